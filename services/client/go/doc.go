// Package muster delivers results to a Muster fleet. It is for authors of plugins, sidecars and agents.
//
//	config, err := muster.LoadConfig("node.json") // the output of `muster credentials export`
//	client, err := muster.New(config)
//	result, err := client.SubmitFile(ctx, "/tmp/results/facts.json", muster.Delivery{})
//
// A delivery that succeeds is committed: it survives the loss of any process and of power. Until then the
// client retries, over lost connections and restarts of the service, and resumes from the last acknowledged
// byte. Keep your file until then. The client never holds a whole file in memory.
//
// The package does not change the process: no environment, no signal handlers, no global settings. It does
// not log; errors have all details.
package muster
