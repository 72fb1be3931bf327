package channel

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// Chunk is a chunk of an upload whose bytes are sent from where they are: SendMsg of the stream accepts it in place of an
// UploadRequest. The bytes must not change until the server has acknowledged them.
type Chunk struct {
	Header *musterv1.UploadRequest_Chunk // without data
	Data   []byte
}

// Field numbers of UploadRequest.chunk and of its data.
const (
	chunkField = 2
	dataField  = 1000
)

// marshal encodes everything before the bytes, which are the last field of the last field.
func (c *Chunk) marshal() (mem.BufferSlice, error) {
	header, err := proto.Marshal(c.Header)
	if err != nil {
		return nil, err
	}
	header = protowire.AppendVarint(protowire.AppendTag(header, dataField, protowire.BytesType), uint64(len(c.Data)))
	message := protowire.AppendVarint(protowire.AppendTag(nil, chunkField, protowire.BytesType), uint64(len(header)+len(c.Data)))
	return mem.BufferSlice{mem.SliceBuffer(append(message, header...)), mem.SliceBuffer(c.Data)}, nil
}
