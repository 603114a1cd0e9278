// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// sample has one setting of each type.
type sample struct {
	Rate     int
	Share    float64
	Window   time.Duration
	On       bool
	Node     string
	Token    string
	Labels   []string
	Spool    int64
	Out      string // no setting: one invocation's
	HTTPAddr string
}

func defaults() sample {
	return sample{Rate: 19, Share: 0.5, Window: 10 * time.Second, Labels: []string{"a=b"}, Spool: 64 << 20, HTTPAddr: "127.0.0.1:7172"}
}

func declare(cfg *sample) (*pflag.FlagSet, *Set) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.IntVar(&cfg.Rate, "rate", cfg.Rate, "")
	flags.Float64Var(&cfg.Share, "share", cfg.Share, "")
	flags.DurationVar(&cfg.Window, "window", cfg.Window, "")
	flags.BoolVar(&cfg.On, "on", cfg.On, "")
	flags.StringVar(&cfg.Node, "node", cfg.Node, "")
	flags.StringVar(&cfg.Token, "token", cfg.Token, "")
	Secret(flags, "token")
	flags.StringSliceVar(&cfg.Labels, "labels", cfg.Labels, "")
	SizeVar(flags, &cfg.Spool, "spool-bytes", "")
	flags.StringVarP(&cfg.Out, "out", "o", cfg.Out, "")
	FlagOnly(flags, "out")
	flags.StringVar(&cfg.HTTPAddr, "http", cfg.HTTPAddr, "")
	return flags, New(flags, "DIAGON")
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		env  []string
		args []string
		want func(*sample)
		err  string // all that it says, FILE for the path
	}{
		{name: "nothing given leaves the defaults", want: func(*sample) {}},
		{name: "every type is read from the file",
			file: "rate: 49\nshare: 0.25\nwindow: 1m\non: true\nnode: n1 # comment\ntoken: x\nlabels: [a, 'b c']\nspool-bytes: 20GiB\n",
			want: func(c *sample) {
				*c = sample{Rate: 49, Share: 0.25, Window: time.Minute, On: true, Node: "n1", Token: "x", Labels: []string{"a", "b c"}, Spool: 20 << 30, HTTPAddr: c.HTTPAddr}
			}},
		{name: "every type is read from the environment",
			env: []string{"DIAGON_RATE=49", "DIAGON_SHARE=0.25", "DIAGON_WINDOW=1m", "DIAGON_ON=true", "DIAGON_NODE=n1", "DIAGON_TOKEN=x", "DIAGON_LABELS=a,b c", "DIAGON_SPOOL_BYTES=20GiB"},
			want: func(c *sample) {
				*c = sample{Rate: 49, Share: 0.25, Window: time.Minute, On: true, Node: "n1", Token: "x", Labels: []string{"a", "b c"}, Spool: 20 << 30, HTTPAddr: c.HTTPAddr}
			}},
		{name: "the environment overrides the file", file: "rate: 49\nlabels: [x]\n", env: []string{"DIAGON_RATE=97", "DIAGON_LABELS=y"},
			want: func(c *sample) { c.Rate, c.Labels = 97, []string{"y"} }},
		{name: "a flag overrides both", file: "rate: 49\nlabels: [x]\n", env: []string{"DIAGON_RATE=97", "DIAGON_LABELS=y"}, args: []string{"--rate=11", "--labels=z"},
			want: func(c *sample) { c.Rate, c.Labels = 11, []string{"z"} }},
		{name: "a flag that says the default still overrides", env: []string{"DIAGON_RATE=97", "DIAGON_ON=true"}, args: []string{"--rate=19", "--on=false"},
			want: func(*sample) {}},
		{name: "an empty variable counts as not set", file: "node: n1\n", env: []string{"DIAGON_NODE="}, want: func(c *sample) { c.Node = "n1" }},
		{name: "an empty text in the file is a value", file: "http: \"\"\n", want: func(c *sample) { c.HTTPAddr = "" }},
		{name: "an empty list in the file is a value", file: "labels: []\n", want: func(c *sample) { c.Labels = []string{} }},
		{name: "a list may be written as on the command line", file: "labels: a,b\n", want: func(c *sample) { c.Labels = []string{"a", "b"} }},
		{name: "a number may be a name", file: "node: 0012\n", want: func(c *sample) { c.Node = "0012" }},
		{name: "an empty file says nothing", file: "# nothing\n", want: func(*sample) {}},

		{name: "an unknown key", file: "rate: 1\nraet: 49\n", err: `FILE:2: unknown key "raet"; did you mean rate?`},
		{name: "an unknown key near none", file: "colour: red\n", err: `FILE:1: unknown key "colour"`},
		{name: "an underscore for a dash", file: "spool_bytes: 1\n", err: `FILE:1: unknown key "spool_bytes"; did you mean spool-bytes?`},
		{name: "a key that only the command line has", file: "out: x\n", err: `FILE:1: unknown key "out"`},
		{name: "all wrong keys are named at once", file: "x1: 1\nrate: 2\nx2: 1\n", err: "FILE:1: unknown key \"x1\"\nFILE:3: unknown key \"x2\""},
		{name: "a key given twice", file: "rate: 1\nrate: 2\n", err: `FILE:2: mapping key "rate" already defined at [1:1]`},
		{name: "a key given twice in two documents", file: "rate: 1\n---\nrate: 2\n", err: `FILE:3: rate is given twice`},
		{name: "a wrong number in the file", file: "\nrate: many\n", err: `FILE:2: rate: "many" is not of type int: invalid syntax`},
		{name: "a wrong number is named although a flag overrides it", file: "rate: many\n", args: []string{"--rate=1"}, err: `FILE:1: rate: "many" is not of type int: invalid syntax`},
		{name: "a wrong number in the environment", env: []string{"DIAGON_RATE=many"}, err: `DIAGON_RATE: "many" is not of type int: invalid syntax`},
		{name: "a wrong secret is not shown", file: "token: [hunter2]\n", err: `FILE:1: token: wants one value, not a list`},
		{name: "a duration without a unit", file: "window: 10\n", err: `FILE:1: window: "10" is not of type duration: time: missing unit in duration "10"`},
		{name: "a size that is none", file: "spool-bytes: lots\n", err: `FILE:1: spool-bytes: "lots" is not of type size: want a number of bytes, as in 64MiB or 20GB`},
		{name: "a list for one value", file: "rate: [1]\n", err: `FILE:1: rate: wants one value, not a list`},
		{name: "a nested value", file: "http:\n  addr: x\n", err: `FILE:1: http: wants a value, not a nested one`},
		{name: "a key without a value", file: "rate:\n", err: `FILE:1: rate: has no value; leave the line out for the default, or write "" for nothing`},
		{name: "an alias", file: "node: &x a\ntoken: *x\n", err: "FILE:1: node: wants a plain value: anchors, aliases and tags are not read\nFILE:2: token: wants a plain value: anchors, aliases and tags are not read"},
		{name: "a list for the file", file: "- rate: 1\n", err: `FILE:1: wants lines of the form key: value`},
		{name: "no YAML", file: "rate: 1\nnode: [\n", err: `FILE:2: sequence end token ']' not found`},
		{name: "nested without end", file: strings.Repeat("[", 64<<10), err: `FILE:1: nested too deep`},
		{name: "lists in lists without end", file: strings.Repeat("- ", 32<<10), err: `FILE:1: nested too deep`},
		{name: "a file of another kind", file: strings.Repeat("x", 65<<10), err: `FILE: larger than 65536 bytes: not a configuration file`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := defaults()
			flags, set := declare(&got)
			path := filepath.Join(t.TempDir(), "diagon.yaml")
			if tt.file != "" {
				write(t, path, tt.file)
				tt.args = append(tt.args, "--config", path)
			}
			if err := flags.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			_, err := set.Load(tt.env)
			if tt.err != "" {
				if err == nil {
					t.Fatalf("no error, want %q", tt.err)
				}
				if diff := cmp.Diff(tt.err, strings.ReplaceAll(err.Error(), path, "FILE")); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := defaults()
			tt.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFindsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diagon.yaml")
	write(t, path, "rate: 49\n")

	t.Run("that the environment names", func(t *testing.T) {
		cfg := defaults()
		_, set := declare(&cfg)
		if _, err := set.Load([]string{"DIAGON_CONFIG=" + path}); err != nil || cfg.Rate != 49 {
			t.Errorf("rate %d, err %v; want 49 and none", cfg.Rate, err)
		}
	})
	t.Run("or says that it is not there", func(t *testing.T) {
		cfg := defaults()
		_, set := declare(&cfg)
		_, err := set.Load([]string{"DIAGON_CONFIG=" + path + ".not"})
		if want := "config: open " + path + ".not: no such file or directory"; err == nil || err.Error() != want {
			t.Errorf("err = %v, want %s", err, want)
		}
	})
}

func TestLoadWarnsOfVariablesThatNoSettingHas(t *testing.T) {
	cfg := defaults()
	_, set := declare(&cfg)
	warnings, err := set.Load([]string{"DIAGON_RAET=1", "DIAGON_CONFIG=", "DIAGONAL=1", "HOME=/", "DIAGON_PRINT_CONFIG=1", "DIAGON_OUT=x"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"DIAGON_RAET: no such setting; did you mean DIAGON_RATE?",
		"DIAGON_PRINT_CONFIG: no such setting",
		"DIAGON_OUT: no such setting",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if cfg.Out != "" || set.PrintOnly() {
		t.Error("a flag that is no setting took its value from the environment")
	}
}

func TestFlagsFromElsewhereCountAsChanged(t *testing.T) {
	cfg := defaults()
	flags, set := declare(&cfg)
	if _, err := set.Load([]string{"DIAGON_RATE=1"}); err != nil {
		t.Fatal(err)
	}
	if !flags.Changed("rate") || flags.Changed("node") {
		t.Errorf("changed: rate %v, node %v; want true, false", flags.Changed("rate"), flags.Changed("node"))
	}
}

func TestPrint(t *testing.T) {
	cfg := defaults()
	flags, set := declare(&cfg)
	path := filepath.Join(t.TempDir(), "diagon.yaml")
	write(t, path, "# of the fleet\nnode: \"yes\"\nlabels: [\"a b\", c=d]\n")
	if err := flags.Parse([]string{"--config=" + path, "--http=:7172", "--out=x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Load([]string{"DIAGON_RATE=49", "DIAGON_TOKEN=hunter2"}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := set.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := `http: ":7172"  # --http
labels: ["a b", "c=d"]  # FILE:3
node: "yes"  # FILE:2
on: false  # default
rate: 49  # DIAGON_RATE
share: 0.5  # default
spool-bytes: 64MiB  # default
# token is a secret, origin: DIAGON_TOKEN
window: 10s  # default
`
	if diff := cmp.Diff(want, strings.ReplaceAll(b.String(), path, "FILE")); diff != "" {
		t.Errorf("Print (-want +got):\n%s", diff)
	}
}

func TestFlagErrorSuggests(t *testing.T) {
	for _, tt := range []struct{ name, arg, want string }{
		{"a near name", "--raet=1", "unknown flag: --raet; did you mean --rate?"},
		{"nothing near", "--colour", "unknown flag: --colour"},
		{"a short flag", "-x", "unknown shorthand flag: 'x' in -x"},
		{"a flag that exists", "--rate=x", `invalid argument "x" for "--rate" flag: strconv.ParseInt: parsing "x": invalid syntax`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := defaults()
			flags, set := declare(&cfg)
			if err := set.FlagError(flags.Parse([]string{tt.arg})); err == nil || err.Error() != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
		out  string
		err  string
	}{
		{in: "0", want: 0, out: "0"},
		{in: "4096", want: 4096, out: "4KiB"},
		{in: "4097", want: 4097, out: "4097"},
		{in: "1B", want: 1, out: "1"},
		{in: "64 MiB", want: 64 << 20, out: "64MiB"},
		{in: "256Mi", want: 256 << 20, out: "256MiB"},
		{in: "1.5GiB", want: 3 << 29, out: "1536MiB"},
		{in: "20GB", want: 20_000_000_000, out: "19531250KiB"},
		{in: "9223372036854775807", want: 1<<63 - 1, out: "9223372036854775807"},
		{in: "8388608TiB", err: "above 9223372036854775807 bytes"},
		{in: "-1", err: "negative"},
		{in: "-1KiB", err: "negative"},
		{in: "", err: "want a number of bytes"},
		{in: "GiB", err: "want a number of bytes"},
		{in: "NaN", err: "want a number of bytes"},
		{in: "InfB", err: "above 9223372036854775807 bytes"},
	} {
		t.Run("size "+tt.in, func(t *testing.T) {
			var s size
			err := s.Set(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("err = %v, want one saying %q", err, tt.err)
				}
				return
			}
			if err != nil || int64(s) != tt.want || s.String() != tt.out {
				t.Errorf("got %d, %q, %v; want %d, %q", s, s.String(), err, tt.want, tt.out)
			}
		})
	}
}

func TestOneDash(t *testing.T) {
	names := []string{"standalone", "channel", "alsologtostderr"}
	for _, tt := range []struct{ name, in, want string }{
		{"the documented command line", "-standalone=true -channel=h/diagnostics -alsologtostderr=true", "--standalone=true --channel=h/diagnostics --alsologtostderr=true"},
		{"a value of its own", "-channel h/diagnostics", "--channel h/diagnostics"},
		{"two dashes stay two", "--channel=h", "--channel=h"},
		{"another flag is left alone", "-o x -channels=h -v", "-o x -channels=h -v"},
		{"what a command gets after -- is its own", "record -- prog -channel=h", "record -- prog -channel=h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(OneDash(strings.Fields(tt.in), names...), " ")
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzLoad wants no panic, no hang, and that what Print wrote loads to the same settings.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", "rate: 49\n", "labels: [a, 'b', \"c\\n\"]\n", "labels:\n- a\n- |\n  x\n", "node: ~\n", "{rate: 1}", "rate: 1\n---\nnode: x\n...\n",
		"node: >-\n  folded\n  text\n", "? rate\n: 1\n", "<<: {rate: 1}\n", "node: !!str 1\n", "%YAML 1.2\n---\nrate: 1", "node: -.inf\n", "[[[[[[[[[", "node: 'it''s'\n", "on: yes\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		write(t, path, string(data))
		first := defaults()
		flags, set := declare(&first)
		if err := flags.Parse([]string{"--config", path}); err != nil {
			t.Fatal(err)
		}
		if _, err := set.Load(nil); err != nil {
			return
		}
		var b bytes.Buffer
		if err := set.Print(&b); err != nil {
			t.Fatal(err)
		}

		write(t, path, b.String())
		again := defaults()
		flags, set = declare(&again)
		if err := flags.Parse([]string{"--config", path, "--token", first.Token}); err != nil {
			t.Fatal(err)
		}
		if _, err := set.Load(nil); err != nil {
			t.Fatalf("load what Print wrote: %v\n%s", err, b.String())
		}
		if diff := cmp.Diff(first, again, cmp.Transformer("valid", func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") })); diff != "" {
			t.Errorf("Print (-before +after):\n%s\n%s", diff, b.String())
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
