# The gateway as one static file, with the licences, and nothing else. The certificate authorities that it
# needs to speak TLS to its upstreams are compiled into it:
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t watchtide .
#   docker run --rm -p 127.0.0.1:8080:8080 watchtide
FROM golang:1.26 AS build
WORKDIR /src
# The modules are a layer of their own: they change less often than the code.
COPY go.mod go.sum ./
COPY client/go.mod client/go.sum client/
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/watchtide ./cmd/gateway
# The licences of what is compiled in.
RUN cd release && go run . -licenses /out/watchtide >/out/THIRD-PARTY-LICENSES.txt

FROM scratch
COPY --from=build /out/watchtide /watchtide
COPY --from=build /out/THIRD-PARTY-LICENSES.txt /THIRD-PARTY-LICENSES.txt
COPY LICENSE /LICENSE
# A number and not a name: an empty image has no /etc/passwd, and Kubernetes can
# only tell of a number that it is not root.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/watchtide"]
# Without a configuration: a writable store, watched as `notes`. It is in memory, since there is no home
# directory, unless XDG_STATE_HOME names a folder of a volume.
# Who reaches its ports is decided outside of the container, where they are
# published; the operations listener stays on the container's loopback.
CMD ["serve", "--http", "0.0.0.0:8080", "--auth", "none"]
