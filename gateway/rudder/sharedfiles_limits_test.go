package rudder

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/limits"
)

func newUploads() *Server {
	return &Server{uploads: make(chan struct{}, limits.Uploads),
		senderUploads: limits.Quota{All: math.MaxInt64, Each: int64(limits.UploadsOfAddress)}}
}

// beginFrom begins an upload from an address.
func (s *Server) beginFrom(address string) (end func(), err error) {
	r := httptest.NewRequest(http.MethodPut, "/", nil)
	r.RemoteAddr = address
	return s.beginUpload(r)
}

func TestUploadsBeyondLimitWaitAndFailWith503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUploads()
		var ends []func()
		for i := range limits.Uploads {
			end, err := s.beginFrom(fmt.Sprintf("192.0.2.%d:1", i))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		began := time.Now()
		_, err := s.beginFrom("198.51.100.1:1")
		if !errors.Is(err, errUploadsBusy) || refusalOf(err).code != http.StatusServiceUnavailable || time.Since(began) != limits.UploadWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(limits.UploadWait/2, ends[0])
		if ends[0], err = s.beginFrom("198.51.100.1:1"); err != nil {
			t.Errorf("after the end of another: %v", err)
		}
		for _, end := range ends {
			end()
		}
		if len(s.uploads) != 0 || s.senderUploads.Held() != 0 {
			t.Errorf("%d uploads, %d of addresses remain", len(s.uploads), s.senderUploads.Held())
		}
	})
}

// A client may use every address of its IPv6 network.
func TestUploadsOfOneNetworkAreBounded(t *testing.T) {
	s := newUploads()
	for i := range limits.UploadsOfAddress {
		if _, err := s.beginFrom(fmt.Sprintf("[2001:db8::%x]:1", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.beginFrom("[2001:db8::ffff]:2"); !errors.Is(err, errTooManyUploads) {
		t.Error(err)
	}
	if _, err := s.beginFrom("[2001:db8:0:1::1]:1"); err != nil {
		t.Errorf("another network: %v", err)
	}
}

func TestUploadAboveLimitOfAddressIsAnsweredWith503(t *testing.T) {
	s := startRoot(t)
	s.server.senderUploads.Acquire("127.0.0.1/32", int64(limits.UploadsOfAddress))
	s.want(s.put("file?ttl=1d", block("n-a", "sha512", content), content), http.StatusServiceUnavailable, "")
	s.server.senderUploads.Release("127.0.0.1/32", int64(limits.UploadsOfAddress))
	s.want(s.put("file?ttl=1d", block("n-a", "sha512", content), content), http.StatusOK, "")
}
