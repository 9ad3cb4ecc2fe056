#!/bin/sh
# What only tests need and pip does not have: Java for Spark, a browser for the pages, Redis for the shared index.
# Installs Debian's where there is none and this user may. Another apt may be running: the lock of dpkg is waited for by
# apt itself, those of the lists and the archives by trying again, for ten minutes in all.
TRIES=${TRIES:-120} PAUSE=${PAUSE:-5}

there() {
  case $1 in
    java) command -v java || test -x "${JAVA_HOME:-/none}/bin/java" ;;
    chromium) command -v chromium && command -v chromedriver ;;
    *) command -v "$1" ;;
  esac >/dev/null
}

apt() {
  while ! said=$(apt-get -qq -o DPkg::Lock::Timeout=600 "$@" 2>&1 >/dev/null); do
    case $said in *"get lock"* | *"lock directory"*) TRIES=$((TRIES - 1)) ;; *) TRIES=0 ;; esac
    test "$TRIES" -gt 0 || { echo "apt-get $1: $said" >&2; return 1; }
    sleep "$PAUSE"
  done
}

updated=
install() {
  if [ "$(id -u)" != 0 ]; then echo "Only root may install $*." >&2
  elif ! command -v apt-get >/dev/null; then echo "There is no apt-get to install $*." >&2
  else
    if [ -z "$updated" ]; then updated=no; apt update && updated=yes; fi
    test $updated = yes && apt install -y "$@"
  fi
}

export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
there java || install openjdk-17-jre-headless
there chromium || install chromium chromium-driver
there redis-server || install redis-server
there java || echo "There is no Java here: the tests of the Spark engine are skipped."
there chromium || echo "There is no Chromium here: the tests of the page in a browser are skipped."
there redis-server || echo "There is no redis-server here: the tests of the shared index are skipped."
