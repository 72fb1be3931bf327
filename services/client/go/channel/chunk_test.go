package channel

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

func TestChunkIsEncodedAsUploadRequestWithoutCopy(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("data"), 50_000)} {
		header := &musterv1.UploadRequest_Chunk{Offset: 1 << 40, RawSize: int64(len(data)), Crc32C: 7}
		encoded, err := newTextCodec().Marshal(&Chunk{Header: header, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		if last := encoded[len(encoded)-1].ReadOnlyData(); len(data) > 0 && &last[0] != &data[0] {
			t.Error("the data were copied")
		}
		got := &musterv1.UploadRequest{}
		if err := proto.Unmarshal(encoded.Materialize(), got); err != nil {
			t.Fatal(err)
		}
		want := proto.Clone(header).(*musterv1.UploadRequest_Chunk)
		want.Data = data
		if !proto.Equal(got, &musterv1.UploadRequest{Message: &musterv1.UploadRequest_Chunk_{Chunk: want}}) {
			t.Errorf("%d bytes: another message", len(data))
		}
	}
}
