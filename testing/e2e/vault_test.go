package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// vaulted is a fleet with a real OpenBao, whose policy "jobs" admits the jobs service to prod/.
type vaulted struct {
	*deploying
	bao *fleet.OpenBao
}

// jobsPolicy admits what the documentation names.
const jobsPolicy = `
path "secret/data/prod/*" { capabilities = ["read"] }
path "secret/subkeys/prod/*" { capabilities = ["read"] }
`

// newVaulted starts both, with the secret prod/db, whose field password has the value of the tests in its first version.
func newVaulted(t *testing.T) *vaulted {
	t.Helper()
	v := &vaulted{deploying: newVault(t), bao: must(fleet.StartOpenBao("../.."))(t)}
	t.Cleanup(func() { check(t, v.bao.Close()) })
	v.setPolicy(t, "actions: [deployment]\n    secrets: [\"vault:prod/*\"]")
	v.put(t, "prod/db", "password="+theSecret, "user=ada")
	v.allow(t, jobsPolicy)
	must(v.bao.Run("auth", "enable", "approle"))(t)
	return v
}

// put stores a version of a secret.
func (v *vaulted) put(t *testing.T, path string, fields ...string) {
	t.Helper()
	must(v.bao.Run(append([]string{"kv", "put", "-mount=secret", path}, fields...)...))(t)
}

func (v *vaulted) allow(t *testing.T, policy string) {
	t.Helper()
	must(v.bao.Run("policy", "write", "jobs", v.write(t, "policy.hcl", policy)))(t)
}

// role creates the role "jobs" of AppRole with these settings, and lets the jobs service use it.
func (v *vaulted) role(t *testing.T, settings ...string) {
	t.Helper()
	must(v.bao.Run(append([]string{"write", "auth/approle/role/jobs", "token_policies=jobs"}, settings...)...))(t)
	role := must(v.bao.Run("read", "-field=role_id", "auth/approle/role/jobs/role-id"))(t)
	secret := must(v.bao.Run("write", "-force", "-field=secret_id", "auth/approle/role/jobs/secret-id"))(t)
	v.configure(t, map[string]string{"role_id_file": v.write(t, "role", role+"\n"), "secret_id_file": v.write(t, "id", secret+"\n")})
}

// configure sets values below secrets.vault of the jobs service.
func (v *vaulted) configure(t *testing.T, values map[string]string) {
	t.Helper()
	all := map[string]string{"secrets.vault.address": v.bao.Address, "secrets.vault.ca_file": v.bao.CA}
	for name, value := range values {
		all["secrets.vault."+name] = value
	}
	check(t, v.Configure("jobs", all))
}

// deploy starts the type with this secret; the rest are further arguments.
func (v *vaulted) deploy(secret string, arguments ...string) (string, error) {
	return v.Muster(append([]string{"deploy", "--type", "vault", "--node", "n1", "--secret", "db=" + secret}, arguments...)...)
}

// refusal returns the error of a deployment with this secret.
func (v *vaulted) refusal(t *testing.T, secret string) string {
	t.Helper()
	out, err := v.deploy(secret)
	if err == nil {
		t.Fatalf("a deployment with %s is created: %s", secret, out)
	}
	return err.Error()
}

// The container gets the version that the operator signed, and nothing else has the value: no disk, no log, no command.
func TestVaultSecretReachesTheContainer(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	v.role(t)
	v.node.attach(t)
	v.node.agent.End()
	v.node.awaitAttached(t, false)
	id := strings.TrimSpace(must(v.deploy("vault:prod/db#password", "--ttl", "3m"))(t))
	v.put(t, "prod/db", "password=another") // after the signature
	v.node.attach(t)
	until(t, "the deployment ends", func() bool { return v.show(t, id).State == "succeeded" })
	logs := must(v.Muster("deployment", "logs", id))(t)
	if !strings.Contains(logs, "the secret has 18 bytes\nn1: "+strings.Repeat("*", len(theSecret))+" is right\n") {
		t.Errorf("the output is %q", logs)
	}
	var shown struct {
		Secrets []struct {
			Name, Secret string
			Version      int
		}
	}
	check(t, json.Unmarshal([]byte(must(v.Muster("deployment", "show", "--json", id))(t)), &shown))
	if len(shown.Secrets) != 1 || shown.Secrets[0].Secret != "vault:prod/db#password" || shown.Secrets[0].Version != 1 {
		t.Errorf("the deployment has the secrets %+v", shown.Secrets)
	}
	out, _ := v.deploy("vault:prod/db#password", "--wait") // the program compares the value with the first one, and fails
	if !strings.Contains(out, "vault:prod/db#password@2") || !strings.Contains(out, "the secret has 7 bytes") {
		t.Errorf("the newest version: %s", out)
	}
	if out := must(v.deploy("vault:prod/db#password@1", "--wait"))(t); !strings.Contains(out, " is right") {
		t.Errorf("the first version: %s", out)
	}
	if found := filesWithSecret(t, v.node.home, v.Home, filepath.Dir(v.docker.Socket)); len(found) > 0 {
		t.Errorf("these files have the secret: %v", found)
	}
	noContainers(t, v.docker)
}

// Each failure of the server has its own reason, and starts nothing.
func TestVaultFailureHasItsReason(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_NOT_CONFIGURED") {
		t.Errorf("without a Vault: %s", why)
	}
	v.role(t)
	v.put(t, "prod/gone", "password=x")
	must(v.bao.Run("kv", "delete", "-mount=secret", "prod/gone"))(t)
	v.put(t, "prod/lost", "password=x")
	must(v.bao.Run("kv", "destroy", "-mount=secret", "-versions=1", "prod/lost"))(t)
	for secret, want := range map[string]string{
		"vault:prod/none#password": "VAULT_SECRET_NOT_FOUND",
		"vault:prod/db#none":       "VAULT_SECRET_NOT_FOUND",
		"vault:prod/db#password@9": "VAULT_SECRET_NOT_FOUND",
		"vault:prod/gone#password": "was deleted",
		"vault:prod/lost#password": "is destroyed",
		"vault:test/db#password":   "VAULT_PERMISSION_DENIED",
	} {
		if why := v.refusal(t, secret); !strings.Contains(why, want) {
			t.Errorf("%s: %s instead of %s", secret, why, want)
		}
	}
	// It may be read no more when the node asks.
	v.allow(t, strings.ReplaceAll(jobsPolicy, "secret/data/", "secret/none/"))
	v.node.attach(t)
	out, err := v.deploy("vault:prod/db#password", "--wait", "--json")
	if err == nil || !strings.Contains(out, "SECRET_UNAVAILABLE") || !strings.Contains(out, "VAULT_PERMISSION_DENIED") {
		t.Errorf("without the right to read: %v: %s", err, out)
	}
	noContainers(t, v.docker)
	must(v.bao.Run("operator", "seal"))(t)
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_SEALED") {
		t.Errorf("sealed: %s", why)
	}
	check(t, v.bao.Unseal())
	until(t, "the secret is found again", func() bool {
		_, err := v.deploy("vault:prod/db#password")
		return err == nil
	})
	other, _, err := v.bao.ClientCertificate("other")
	check(t, err)
	v.configure(t, map[string]string{"ca_file": other})
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_UNTRUSTED") {
		t.Errorf("with another CA: %s", why)
	}
	v.configure(t, map[string]string{"address": "https://127.0.0.1:1"})
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_UNREACHABLE") {
		t.Errorf("without a server: %s", why)
	}
	v.configure(t, map[string]string{"role_id_file": v.write(t, "other", "other")})
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_LOGIN_FAILED") {
		t.Errorf("with another role: %s", why)
	}
}

// While the server does not answer, other calls of the jobs service do.
func TestSilentVaultDelaysNoOtherCall(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	v.role(t)
	v.configure(t, map[string]string{"timeout": "10s"})
	must(v.deploy("vault:prod/db#password"))(t) // it has logged in
	check(t, v.bao.Process().Stop())
	const calls = 8 // more than the threads of the jobs service for requests
	results := make(chan error, calls)
	for range calls {
		go func() {
			_, err := v.deploy("vault:prod/db#password")
			results <- err
		}()
	}
	until(t, "four calls wait for Vault", func() bool { return v.connections(t) >= 4 })
	for range 3 {
		must(v.Muster("secret", "list"))(t)
	}
	select {
	case err := <-results:
		t.Errorf("a call that waits for Vault ended before other calls: %v", err)
		results <- err
	default:
	}
	check(t, v.bao.Process().Continue())
	for range calls {
		<-results
	}
}

// A node asks for a secret, and the deployment is cancelled before Vault answers.
func TestSecretOfVaultIsNotSentAfterACancellation(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	v.role(t)
	v.configure(t, map[string]string{"timeout": "10s"})
	id := strings.TrimSpace(must(v.deploy("vault:prod/db#password", "--ttl", "2m"))(t))
	check(t, v.bao.Process().Stop())
	v.node.attach(t)
	until(t, "the value is read from Vault", func() bool { return v.hasUnreadRequest(t) })
	must(v.Muster("deployment", "cancel", id))(t)
	check(t, v.bao.Process().Continue())
	until(t, "the node gets no secret", func() bool {
		log := v.jobsLog(t)
		return strings.Contains(log, "the secrets of a job cannot be read") && strings.Contains(log, "the deployment was cancelled")
	})
	if log := v.jobsLog(t); strings.Contains(log, "secrets are sent to a node") {
		t.Errorf("secrets are sent to a node: %s", log)
	}
}

// connections returns the number of connections to the server.
func (v *vaulted) connections(t *testing.T) int {
	t.Helper()
	remote := fmt.Sprintf(":%04X 01 ", v.port(t)) // 01: established
	return strings.Count(string(must(os.ReadFile("/proc/net/tcp"))(t)), remote)
}

// hasUnreadRequest returns whether the server has received bytes on a connection that it has not read.
func (v *vaulted) hasUnreadRequest(t *testing.T) bool {
	t.Helper()
	local := regexp.MustCompile(fmt.Sprintf(`:%04X [0-9A-F]{8}:[0-9A-F]{4} 01 [0-9A-F]{8}:0*[1-9A-F]`, v.port(t)))
	return local.Match(must(os.ReadFile("/proc/net/tcp"))(t))
}

func (v *vaulted) port(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(v.bao.Address, "https://"))
	check(t, err)
	return must(strconv.Atoi(port))(t)
}

// A secret id that is valid once, in a wrapped answer, is enough for all later restarts and renewals, also where the server
// sends values in wrapped answers alone.
func TestVaultLoginSurvivesRestartsAndExpiry(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	v.role(t, "token_ttl=30s")
	v.allow(t, `path "secret/data/prod/*" {
  capabilities = ["read"]
  min_wrapping_ttl = "1s"
  max_wrapping_ttl = "90s"
}
path "secret/subkeys/prod/*" { capabilities = ["read"] }
`)
	var wrapped struct {
		Info struct{ Token string } `json:"wrap_info"`
	}
	check(t, json.Unmarshal([]byte(must(v.bao.Run("write", "-force", "-wrap-ttl=5m", "-format=json", "auth/approle/role/jobs/secret-id"))(t)), &wrapped))
	v.configure(t, map[string]string{"secret_id_file": v.write(t, "wrapped", wrapped.Info.Token),
		"secret_id_wrapping_path": "auth/approle/role/jobs/secret-id", "wrap_ttl": "60s"})
	v.node.attach(t)
	deploy := func(when string) {
		t.Helper()
		if out, err := v.deploy("vault:prod/db#password", "--wait"); err != nil || !strings.Contains(out, " is right") {
			t.Fatalf("%s: %v: %s", when, err, out)
		}
	}
	deploy("after the first login")
	_ = must(v.Muster("down"))(t)
	check(t, v.Up())
	deploy("after a restart")
	// Then the token is renewed: the secret id is used up.
	must(v.bao.Run("write", "auth/approle/role/jobs/secret-id/destroy", "secret_id="+v.unwrapped(t)))(t)
	check(t, fleet.Until(2*time.Minute, "a token was renewed", func() bool {
		var accessors []string
		check(t, json.Unmarshal([]byte(must(v.bao.Run("list", "-format=json", "auth/token/accessors"))(t)), &accessors))
		for _, accessor := range accessors {
			out, err := v.bao.Run("token", "lookup", "-format=json", "-accessor", accessor)
			if err == nil && strings.Contains(out, "last_renewal_time") {
				return true
			}
		}
		return false
	}))
	deploy("after the renewal")
}

// unwrapped returns the secret id that the jobs service has kept.
func (v *vaulted) unwrapped(t *testing.T) string {
	t.Helper()
	file := filepath.Join(v.Home, "jobs/vault-secret-id")
	if info := must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v", file, info.Mode())
	}
	var kept struct {
		ID string `json:"secret_id"`
	}
	check(t, json.Unmarshal(must(os.ReadFile(file))(t), &kept))
	return kept.ID
}

// The jobs service logs in with a certificate.
func TestVaultAcceptsTheCertificateOfTheJobsService(t *testing.T) {
	t.Parallel()
	v := newVaulted(t)
	must(v.bao.Run("auth", "enable", "cert"))(t)
	must(v.bao.Run("write", "auth/cert/certs/jobs", "certificate=@"+v.bao.CA, "allowed_common_names=muster-jobs", "token_policies=jobs"))(t)
	use := func(name string) {
		t.Helper()
		certificate, key, err := v.bao.ClientCertificate(name)
		check(t, err)
		v.configure(t, map[string]string{"auth": "cert", "certificate_file": certificate, "key_file": key, "certificate_role": "jobs"})
	}
	use("another")
	if why := v.refusal(t, "vault:prod/db#password"); !strings.Contains(why, "VAULT_LOGIN_FAILED") {
		t.Errorf("with another name: %s", why)
	}
	use("muster-jobs")
	v.node.attach(t)
	if out := must(v.deploy("vault:prod/db#password", "--wait"))(t); !strings.Contains(out, " is right") {
		t.Errorf("the deployment prints %s", out)
	}
}
