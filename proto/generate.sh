#!/bin/sh
# Writes the Go code of proto/: messages and gRPC stubs into proto/gen/go, the REST translation of
# proto/muster/v1/http.yaml and the OpenAPI document into gateway/gen. The plugins are pinned by
# bazel/tools/go.mod; protoc is Debian's. The output is checked in, and testing/lint proves that it is fresh.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd bazel/tools && GOBIN=$work go install \
  google.golang.org/protobuf/cmd/protoc-gen-go \
  google.golang.org/grpc/cmd/protoc-gen-go-grpc \
  github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway \
  github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2)
rm -rf proto/gen/go/muster gateway/gen
mkdir -p gateway/gen
module=module=muster.example/proto/gen/go
rules=grpc_api_configuration=proto/muster/v1/http.yaml
(cd proto && find muster -name '*.proto' -print0 | LC_ALL=C sort -z) | xargs -0 protoc --proto_path=proto \
  --plugin=protoc-gen-go="$work/protoc-gen-go" \
  --plugin=protoc-gen-go-grpc="$work/protoc-gen-go-grpc" \
  --plugin=protoc-gen-grpc-gateway="$work/protoc-gen-grpc-gateway" \
  --plugin=protoc-gen-openapiv2="$work/protoc-gen-openapiv2" \
  --go_out=proto/gen/go --go_opt=$module \
  --go-grpc_out=proto/gen/go --go-grpc_opt=$module \
  --grpc-gateway_out=gateway/gen --grpc-gateway_opt=$module,$rules,standalone=true \
  --openapiv2_out="$work" \
  --openapiv2_opt=$rules,allow_merge=true,merge_file_name=muster,disable_default_errors=true
go run ./gateway/openapi/merge "$work/muster.swagger.json" gateway/openapi/routes.json \
  >gateway/gen/openapi.json
cp "$root/gateway/openapi/gen.go.in" gateway/gen/gen.go
