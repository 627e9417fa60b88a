# SPDX-License-Identifier: Apache-2.0
# docker build -t <your registry>/muster:0.1.0 .
FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/muster
WORKDIR /src
# Dependencies first: this layer is kept as long as the lock does not change.
COPY requirements.lock ./
RUN /opt/muster/bin/pip install --requirement requirements.lock
COPY . .
# --no-deps: nothing that the lock does not name.
RUN /opt/muster/bin/pip install --no-deps .

FROM python:3.12-slim
LABEL org.opencontainers.image.title="muster" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/muster /opt/muster
# The root file system is read-only in the Pod: nothing is compiled or written at run time.
ENV PATH=/opt/muster/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that runAsNonRoot can be checked without a passwd file. The same as in extender.yaml.
USER 65532:65532
# 8888: the verbs, on loopback. 8889: metrics and probes.
EXPOSE 8889
ENTRYPOINT ["muster"]
CMD ["serve"]
