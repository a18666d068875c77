# Serves a model file as a user without rights:
#   docker build -t tuckergp .
#   docker run -p 127.0.0.1:8000:8000 -v "$PWD/models:/model:ro" -v journal:/journal -e TUCKERGP_TOKEN=... tuckergp
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/tuckergp && /opt/tuckergp/bin/pip install --no-cache-dir ".[serve]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin tuckergp \
    && mkdir -p /journal /cache \
    && chown tuckergp /journal /cache
COPY --from=build /opt/tuckergp /opt/tuckergp
ENV PATH="/opt/tuckergp/bin:$PATH" \
    NUMBA_CACHE_DIR=/cache \
    OMP_NUM_THREADS=1 \
    PYTHONUNBUFFERED=1
USER 10001
VOLUME ["/journal"]
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["tuckergp", "serve"]
CMD ["/model/model.tgp", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", "--journal", "/journal/journal.jsonl"]
