package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// sign is the node's signature over a result.
func (n *node) sign(t *testing.T, d *musterv1.ResultDescription, body string) *musterv1.Signature {
	t.Helper()
	read := func(file string) []byte { return must(os.ReadFile(filepath.Join(n.folder(), "tls", file)))(t) }
	chain := read("cert.pem")
	identity := must(tls.X509KeyPair(chain, read("key.pem")))(t)
	text := fmt.Sprintf("muster-result-v1\n%s\n%s\n%s\n%d\n%d\n%x\nresult\n%d\n%s\n%d\n%s\n", d.Key.Run, d.Key.Plugin, d.Key.Node,
		d.Attempt, len(body), sha256.Sum256([]byte(body)), len(d.MediaType), d.MediaType, len(d.FileName), d.FileName)
	digest := sha256.Sum256([]byte(text))
	return &musterv1.Signature{CertificateChainPem: string(chain),
		Value: must(ecdsa.SignASN1(rand.Reader, identity.PrivateKey.(*ecdsa.PrivateKey), digest[:]))(t)}
}

// forgeResults delivers a result of its node with another description than the node signed: as a call that it
// forwards, and as a result that it has spooled.
func forgeResults(t *testing.T, forger *forgingRelay, n *node, run string) {
	const body = "what the node found"
	results := musterv1.NewResultServiceClient(forger.connection)
	genuine := smallResult(run, "hostfacts", n.name, body)
	genuine.Description.MediaType, genuine.Description.FileName = "text/plain", "facts.txt"
	genuine.Signature = n.sign(t, genuine.Description, body)
	digest := sha256.Sum256([]byte(body))

	submit := func(change func(*musterv1.ResultDescription)) (*musterv1.Result, error) {
		request := proto.Clone(genuine).(*musterv1.SubmitResultRequest)
		change(request.Description)
		return results.SubmitResult(forger.speakFor(t, n.name, forger.statementOf(t, n.name)), request)
	}
	open := func(change func(*musterv1.ResultDescription)) error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		description := proto.Clone(genuine.Description).(*musterv1.ResultDescription)
		change(description)
		_, err := results.OpenUpload(ctx, &musterv1.OpenUploadRequest{Description: description,
			Spooled: &musterv1.SpooledProof{Signature: genuine.Signature, Size: int64(len(body)), Sha256: digest[:],
				IsError: description.IsError, AcceptTime: timestamppb.Now()}})
		return err
	}
	for _, change := range []func(*musterv1.ResultDescription){
		func(d *musterv1.ResultDescription) { d.MediaType = "application/gzip" },
		func(d *musterv1.ResultDescription) { d.FileName = "forged.txt" },
		func(d *musterv1.ResultDescription) { d.FileName, d.MediaType = d.MediaType, d.FileName },
		func(d *musterv1.ResultDescription) { d.IsError = true },
	} {
		_, err := submit(change)
		wantError(t, err, codes.Unauthenticated, "INVALID_SIGNATURE")
		wantError(t, open(change), codes.Unauthenticated, "INVALID_SIGNATURE")
	}
	unchanged := func(*musterv1.ResultDescription) {}
	check(t, open(unchanged))
	if result := must(submit(unchanged))(t); result.MediaType != "text/plain" || result.FileName != "facts.txt" ||
		!result.GetDelivery().GetSigned() || result.Outcome != musterv1.Outcome_OUTCOME_GENUINE {
		t.Errorf("committed as %v", result)
	}
}
