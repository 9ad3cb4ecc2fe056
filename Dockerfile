# The commands, the reports and the service, with kernels compiled when the image is built: docs/howto/service.md
#   docker build -t likewise .
#   docker run --rm -v "$PWD:/data" likewise dedup notes.csv --id id --out clean/
FROM python:3.13-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[report,serve,html]" && rm -r /wheels
# kernels and fonts are for every user: --user may name one; on another kind of processor kernels are compiled again
ENV NUMBA_CACHE_DIR=/var/cache/likewise MPLCONFIGDIR=/var/cache/likewise/matplotlib
RUN useradd --create-home likewise && install -d -o likewise /data "$NUMBA_CACHE_DIR" "$MPLCONFIGDIR"
USER likewise
RUN likewise warmup && python -c "import matplotlib.font_manager" && chmod -R a+rwX "$NUMBA_CACHE_DIR"
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import pathlib, urllib.request as u; b'serve' in pathlib.Path('/proc/1/cmdline').read_bytes() and u.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["likewise"]
CMD ["--help"]
