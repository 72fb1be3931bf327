package rudder

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"time"
)

// identity is the key and the certificate of a node. They are created once for each id.
type identity struct {
	key         *rsa.PrivateKey
	certificate tls.Certificate
}

var (
	identities     = map[string]*identity{}
	identitiesLock sync.Mutex
)

func identityOf(id string) *identity {
	identitiesLock.Lock()
	defer identitiesLock.Unlock()
	if known := identities[id]; known != nil {
		return known
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(identities) + 1)), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: id}}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	identities[id] = &identity{key, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	return identities[id]
}

func (i *identity) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Certificate[0]}))
}

func (i *identity) keyPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(i.key)}))
}

func (i *identity) keyHash() string {
	spki, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(spki)
	return "sha256//" + base64.StdEncoding.EncodeToString(sum[:])
}

// listOf returns a nodes list; each entry is "id host parent". Each node has its own key.
func listOf(entries ...string) string {
	list := map[string]map[string]string{}
	for _, entry := range entries {
		part := strings.Fields(entry)
		list[part[0]] = map[string]string{"hostname": part[1], "policy-server": part[2], "key-hash": identityOf(part[0]).keyHash()}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// block returns a header block of a source for a content; `change` may corrupt it.
func block(source, algorithm, content string, change ...func(map[string]string)) string {
	own := identityOf(source)
	hash := map[string]crypto.Hash{"sha256": crypto.SHA256, "sha512": crypto.SHA512}[algorithm]
	digest := hash.New()
	digest.Write([]byte(content))
	sum := digest.Sum(nil)
	signature, err := rsa.SignPKCS1v15(rand.Reader, own.key, hash, sum)
	if err != nil {
		panic(err)
	}
	values := map[string]string{
		"header": "rudder-signature-v1", "algorithm": algorithm, "digest": hex.EncodeToString(signature),
		"hash_value":   hex.EncodeToString(sum),
		"short_pubkey": base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(&own.key.PublicKey)),
		"hostname":     source + ".example", "keydate": "2024-01-02 03:04:05 UTC", "keyid": "0badcafe",
	}
	for _, c := range change {
		c(values)
	}
	text := ""
	for _, name := range []string{"header", "algorithm", "digest", "hash_value", "short_pubkey", "hostname", "keydate", "keyid", "expires", "other"} {
		if value, found := values[name]; found {
			text += name + "=" + value + "\n"
		}
	}
	return text
}

func sumOf(content string) string {
	digest := crypto.SHA512.New()
	digest.Write([]byte(content))
	return hex.EncodeToString(digest.Sum(nil))
}
