// SPDX-License-Identifier: Apache-2.0

// Package uplink is the agent's half of the wire: it keeps one connection to a
// server, says over it what this node is and has, and carries orders back.
//
// A Session opens three streams on the connection (api/diagon/v1): Connect for
// the control messages, PushProfiles for batches, UploadArtifact for the results
// of captures, so that a slow upload never delays an order. It does not know how
// batches are made nor how orders are carried out: those are the Reporter and
// the Orders that it is given.
//
// What is promised:
//
//   - PushBatch puts a batch into the spool on disk and returns; the network is not
//     in its way. A batch leaves the spool when the server says that it is durable
//     or will never be accepted. Lost connections and killed processes on either
//     side cost resends, which the server recognises by (node, boot id, sequence).
//   - An order to capture is handed over once, however often it is delivered, also
//     over restarts of the agent.
//   - Every wait on the server has a deadline, and every queue a bound. What does not
//     fit is counted: places "spool" (samples dropped by a bound, or that no disk
//     would take) and "rejected" (samples that the server refused for good).
package uplink
