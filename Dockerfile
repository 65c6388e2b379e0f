# Pin the base by digest where builds must repeat: --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:…
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# `nvidia` or `amd` in place of `runtime` reads the cards that the container is given.
ARG REQUIREMENTS=runtime
WORKDIR /src

# Two environments: the server's goes into the image, without pip; Node.js with npm is for this stage only.
COPY requirements/ requirements/
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install -q --require-hashes --no-deps -r "requirements/${REQUIREMENTS}.txt" \
    && python -m venv /opt/node \
    && /opt/node/bin/python -m pip install -q --require-hashes --no-deps -r requirements/node.txt
ENV PATH=/opt/venv/bin:/opt/node/bin:$PATH

COPY .npmrc package.json package-lock.json ./
RUN npm ci --omit=dev

COPY . .
# Unchecked bytecode never needs to be written again, which a read-only file system would not allow.
RUN TOKENROOF_ASSETS_DIR=/srv/tokenroof/assets python -m app.cli assets \
    && cp -r app migrations templates pyproject.toml LICENSE /srv/tokenroof/ \
    && find /srv/tokenroof -name __pycache__ -prune -exec rm -rf {} + \
    && python -m compileall -q --invalidation-mode unchecked-hash /srv/tokenroof/app /srv/tokenroof/migrations

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 tokenroof \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin tokenroof \
    && install -d -o 10001 -g 10001 -m 0750 /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build /srv/tokenroof /srv/tokenroof

# SQLite looks for a place for its temporary files; on a read-only file system the volume is the one there is.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SQLITE_TMPDIR=/data \
    TOKENROOF_ASSETS_DIR=/srv/tokenroof/assets \
    TOKENROOF_DATA_DIR=/data \
    TOKENROOF_HOST=0.0.0.0 \
    TOKENROOF_PORT=8000
WORKDIR /srv/tokenroof
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
# No proxy named in the environment may come between the check and this very server.
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['TOKENROOF_PORT'] + '/healthz', timeout=2)"]
CMD ["python", "-m", "app.cli", "serve"]
