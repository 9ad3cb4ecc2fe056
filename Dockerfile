# The commands, the reports and the service, with kernels that are compiled when the image is built: docs/howto/service.md
#   docker build -t likewise .
#   docker run --rm -v "$PWD:/data" likewise dedup notes.csv --id id --out clean/
FROM python:3.13-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY tools/machine_code.py tools/
RUN pip install --no-cache-dir hatchling . && HATCH_BUILD_HOOK_ENABLE_CUSTOM=true python -m hatchling build -t wheel -d /wheels

FROM python:3.13-slim
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[report,serve,html,plot]" && rm -r /wheels
# for every user: --user may name one; on a processor older than x86-64-v3 kernels are compiled again, and kept here
ENV NUMBA_CACHE_DIR=/var/cache/likewise MPLCONFIGDIR=/var/cache/likewise/matplotlib
RUN useradd --create-home likewise && install -d -o likewise /data "$NUMBA_CACHE_DIR" "$MPLCONFIGDIR"
USER likewise
RUN python -c "import matplotlib.font_manager" && chmod -R a+rwX "$NUMBA_CACHE_DIR"
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import pathlib, urllib.request as u; b'serve' in pathlib.Path('/proc/1/cmdline').read_bytes() and u.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["likewise"]
CMD ["--help"]
