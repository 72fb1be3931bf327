package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"muster.example/gateway/limits"
)

// refusal returns the reason of a failed handshake; Options lists them.
func refusal(err error) string {
	var header tls.RecordHeaderError
	var unverified *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var network net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &header) && looksLikeHTTP(header.RecordHeader):
		return "plain_http"
	case errors.As(err, &unknown):
		return "other_authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "expired"
	case errors.As(err, &unverified), errors.As(err, &invalid):
		return "bad_certificate"
	case strings.Contains(err.Error(), "didn't provide a certificate"):
		return "no_certificate"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &operation) && operation.Op == "remote error": // an alert: the client rejected the handshake
		return "other"
	case errors.Is(err, io.EOF), errors.As(err, &network):
		return "gone"
	}
	return "other"
}

func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

// answerPlain reads a little of what the client still sends: a close with unread bytes would reset the connection
// before the client sees the answer.
func answerPlain(conn *counted, line string) {
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+
		line+"\n")
	if half, ok := conn.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, conn, limits.CloseBytes)
}
