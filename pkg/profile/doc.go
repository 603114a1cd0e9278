// SPDX-License-Identifier: Apache-2.0

// Package profile holds the words every other package speaks: Frame, Stack,
// Subject, Sample, Reading, Loss, Batch.
//
// It rests on the standard library alone and decides nothing: it does not
// collect, resolve, aggregate or encode. A collector makes Samples whose frames
// are bare addresses; pkg/subject says who they belong to, pkg/symbol says what
// the addresses are called; a Batch is what leaves the node.
package profile
