// Package muster delivers results to a Muster fleet: for authors of plugins, sidecars and agents.
//
//	config, err := muster.LoadConfig("node.json") // what `muster credentials export` printed
//	client, err := muster.New(config)
//	result, err := client.SubmitFile(ctx, "/tmp/results/facts.json", muster.Delivery{})
//
// The promise: a delivery that succeeds is committed; it survives the loss of any process and of power.
// Until then the client tries again, over lost connections and restarts of the service, from the byte
// that was reached. Keep your file until then. No file is ever held in memory.
//
// The package changes nothing that belongs to the process: no environment, no signal handlers, no
// global settings. It logs nothing; what happened is in the error.
package muster
