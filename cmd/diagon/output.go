// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"diagon.dev/diagon/pkg/profile"
	"diagon.dev/diagon/pkg/profile/pprofio"
)

// stdoutName is the file name that means standard output.
const stdoutName = "-"

const (
	formatPprof  = "pprof"
	formatFolded = "folded"
)

// formatOf is how a file of that name is written, unless asked otherwise.
func formatOf(name, asked string) (string, error) {
	switch {
	case asked == formatPprof || asked == formatFolded:
		return asked, nil
	case asked != "":
		return "", fmt.Errorf("--format: %q is neither pprof nor folded", asked)
	case name == stdoutName, strings.HasSuffix(name, ".pb.gz"), strings.HasSuffix(name, ".pprof"):
		return formatPprof, nil
	case strings.HasSuffix(name, ".folded"), strings.HasSuffix(name, ".txt"):
		return formatFolded, nil
	}
	return "", fmt.Errorf("-o: %q ends neither in .pb.gz (pprof) nor in .folded or .txt (folded stacks); say which by --format", name)
}

// An output is a file that appears under its name only once it is whole.
type output struct {
	name   string
	format string
	file   *os.File  // nil: standard output
	stdout io.Writer // used then
	size   int64
}

// create opens an output before anything is spent on its content.
func create(name, format string, stdout io.Writer) (*output, error) {
	o := &output{name: name, format: format, stdout: stdout}
	if name == stdoutName {
		return o, refuseTerminal(stdout, format)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("write %s: is a directory", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	o.file = f
	return o, nil
}

// refuseTerminal keeps binary data off the screen.
func refuseTerminal(w io.Writer, format string) error {
	f, ok := w.(*os.File)
	if ok && format == formatPprof && term.IsTerminal(int(f.Fd())) {
		return errors.New("standard output is a terminal and pprof is binary; name a file with -o, or choose --format folded")
	}
	return nil
}

// write fills the output in its format and puts it in place.
func (o *output) write(b *profile.Batch, m pprofio.Meta) error {
	return o.fill(func(w io.Writer) error {
		if o.format == formatFolded {
			return writeFolded(w, b)
		}
		return pprofio.Encode(w, b, m)
	})
}

// fill takes the content from a function, puts it on the disk, and gives it its name.
func (o *output) fill(content func(io.Writer) error) error {
	if o.file == nil {
		buffered := bufio.NewWriter(o.stdout)
		if err := content(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	}
	buffered := bufio.NewWriter(o.file)
	err := content(buffered)
	if err == nil {
		err = errors.Join(buffered.Flush(), o.file.Chmod(0o644), o.file.Sync())
	}
	if err == nil {
		o.size, err = o.file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = os.Rename(o.file.Name(), o.name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.name, err)
	}
	return o.file.Close()
}

// abandon removes what was not put in place. It may be called after fill.
func (o *output) abandon() {
	if o.file != nil {
		o.file.Close()
		os.Remove(o.file.Name()) // gone already when it was renamed
	}
}
