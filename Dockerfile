# Heterformer with its server, approximate index and default backbone; works offline.
#   CPU:   docker build -t heterformer .
#   CUDA:  docker build -t heterformer:cuda --build-arg BASE=nvidia/cuda:12.9.1-base-ubuntu24.04 \
#            --build-arg TORCH_INDEX=https://pypi.org/simple .
#   docker run --rm -v "$PWD:/data" heterformer train papers.net runs/papers
#   docker run --rm -v "$PWD:/data" -p 8080:8080 -e HETERFORMER_API_KEY heterformer serve runs/papers --host 0.0.0.0
# The base is any Debian or Ubuntu with Python 3.11 or later.
ARG BASE=debian:13-slim
FROM ${BASE}
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# Versions of Debian's packages come with the base image.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*

ENV PATH=/opt/heterformer/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1

# torch has a layer of its own: it is large and changes rarely. constraints.txt has the versions.
COPY constraints.txt /src/
RUN python3 -m venv /opt/heterformer \
 && pip install --no-cache-dir --index-url "${TORCH_INDEX}" --constraint /src/constraints.txt torch

COPY pyproject.toml setup.py README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir --constraint /src/constraints.txt '/src[index,minilm,pyg,serve]' \
 && rm -rf /src \
 && useradd --create-home --uid 1000 heterformer

USER 1000
WORKDIR /data
EXPOSE 8080
ENTRYPOINT ["heterformer"]
CMD ["--help"]
