# Two images from one file: `service` answers over HTTP and has no torch; `worker` performs captures.
#   docker build --target service -t graphgate-service .
#   docker build --target worker  -t graphgate-worker .

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /src
RUN python -m venv /opt/graphgate
ENV PATH=/opt/graphgate/bin:$PATH
# The packages first, against empty modules: a change in the code then leaves this layer alone.
COPY pyproject.toml constraints.txt README.md ./
COPY engine/version.py engine/version.py
RUN mkdir service && touch engine/__init__.py service/__init__.py \
    && pip install --constraint constraints.txt '.[fleet,tracing]'
COPY engine engine
COPY service service

FROM build AS build-service
RUN pip install --no-deps --force-reinstall . && python -m compileall -q /opt/graphgate/lib

FROM build AS build-worker
RUN pip install --constraint constraints.txt '.[fleet,tracing,worker]' \
    && pip install --no-deps --force-reinstall . && python -m compileall -q /opt/graphgate/lib

FROM python:3.11-slim-bookworm AS runtime
RUN groupadd --gid 10001 graphgate \
    && useradd --uid 10001 --gid graphgate --home-dir /var/lib/graphgate --shell /usr/sbin/nologin graphgate \
    && install -d -o graphgate -g graphgate -m 0750 /var/lib/graphgate
ENV PATH=/opt/graphgate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    GRAPHGATE_DATA=/var/lib/graphgate
WORKDIR /var/lib/graphgate
VOLUME /var/lib/graphgate

FROM runtime AS worker
COPY --from=build-worker /opt/graphgate /opt/graphgate
USER 10001:10001
# A worker listens nowhere: it is alive while its process is, and /v1/workers says when it was last seen.
HEALTHCHECK NONE
CMD ["graphgate", "worker"]

FROM runtime AS service
COPY --from=build-service /opt/graphgate /opt/graphgate
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
CMD ["graphgate", "serve", "--host", "0.0.0.0", "--port", "8000"]
