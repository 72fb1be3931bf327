package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// A page of the list is bounded by the bytes of its deployments, and the command reads as many pages as it needs.
func TestListOfLargeDeploymentsIsWhole(t *testing.T) {
	t.Parallel()
	f := up(t)
	must(f.Muster("down"))(t)
	const size = 100_000
	fields := (&musterv1.Deployment{}).ProtoReflect().Descriptor().Fields()
	tag := func(name string, length uint64) []byte {
		field := fields.ByTextName(name).Number()
		return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), length)
	}
	sql(t, filepath.Join(f.Home, "jobs/jobs.db"), fmt.Sprintf(`
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
		INSERT INTO deployments (deployment, job, created_by, ended, message, request, request_sha256, position)
		SELECT printf('%%032x', i), printf('%%032x', i), 'ann', 1,
			CAST(X'%x' || printf('%%032x', i) || X'%x' || replace(hex(zeroblob(%d)), '00', 'xx') AS BLOB), x'', x'', 0 FROM n;`,
		tag("deployment", 32), tag("problem", size), size/2))
	check(t, f.Up())
	for _, limit := range []int{40, 1000} {
		var listed []shownDeployment
		check(t, json.Unmarshal([]byte(must(f.Muster("deployment", "list", "--json", "--limit", fmt.Sprint(limit)))(t)), &listed))
		if len(listed) != min(limit, 50) {
			t.Fatalf("muster deployment list --limit %d prints %d deployments", limit, len(listed))
		}
		for i, one := range listed {
			if want := fmt.Sprintf("%032x", 50-i); one.Deployment != want {
				t.Errorf("deployment %d is %s, not %s", i, one.Deployment, want)
			}
		}
	}
}
