"""Make src/likewise/shingle/stopwords.txt from the stop lists of the Snowball project, as PostgreSQL ships them.

apt-get download postgresql-15 && dpkg-deb -x postgresql-15_*.deb pg
python tools/make_stopwords.py pg/usr/share/postgresql/15/tsearch_data
"""

from __future__ import annotations

import sys
from pathlib import Path

LANGUAGES = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
TARGET = Path(__file__).parent.parent / "src" / "likewise" / "shingle" / "stopwords.txt"
HEADER = """\
Stop words of fifteen languages: code, name, words. Made by tools/make_stopwords.py from the lists of the Snowball
project (https://snowballstem.org) as PostgreSQL 15 ships them.

Copyright (c) 2001, Dr Martin Porter. Copyright (c) 2002, Richard Boulton. All rights reserved.
Portions copyright (c) 1996-2022, PostgreSQL Global Development Group.

Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:
1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
   disclaimer.
2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
   disclaimer in the documentation and/or other materials provided with the distribution.
3. Neither the name of the Snowball project nor the names of its contributors may be used to endorse or promote
   products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""


def main(folder: Path) -> None:
    """Write one line per language: its code, its name, its words in the order of the source."""
    lines = [f"# {line}".rstrip() for line in HEADER.splitlines()]
    for code, name in LANGUAGES.items():
        words = dict.fromkeys((folder / f"{name}.stop").read_text(encoding="utf-8").split())
        lines.append(" ".join([code, name, *words]))
        print(f"{code} {name}: {len(words)} words")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
