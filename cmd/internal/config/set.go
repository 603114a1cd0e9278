// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Annotations on a flag. They are pflag's way to say more about one.
const (
	flagOnly = "diagon.dev/flag-only"
	secret   = "diagon.dev/secret"
)

// A Set is the settings of one command. It is not safe for concurrent use.
type Set struct {
	flags  *pflag.FlagSet
	prefix string
	origin map[string]string // by the flag's name, for those not at their default

	file      string
	printOnly bool
}

// New makes a Set of all flags that flags holds when Load is called, and
// declares --config and --print-config among them. The prefix starts the names
// of the environment variables, without an underscore: "DIAGON".
//
// A setting's pflag.Value reads what its String wrote, or is a pflag.SliceValue;
// of pflag's own types only the maps are neither.
func New(flags *pflag.FlagSet, prefix string) *Set {
	s := &Set{flags: flags, prefix: prefix, origin: make(map[string]string)}
	flags.StringVar(&s.file, "config", "", "read settings from this YAML `file`; also "+prefix+"_CONFIG")
	flags.BoolVar(&s.printOnly, "print-config", false, "print each setting with its origin, and exit")
	FlagOnly(flags, "config")
	FlagOnly(flags, "print-config")
	return s
}

// FlagOnly says that a flag is no setting: it belongs to one invocation (an
// output file, say), so neither file nor environment may carry it. It panics
// when there is no such flag.
func FlagOnly(flags *pflag.FlagSet, name string) { annotate(flags, name, flagOnly) }

// Secret says that the value of a flag is shown by nothing in this package. It
// panics when there is no such flag.
func Secret(flags *pflag.FlagSet, name string) { annotate(flags, name, secret) }

func annotate(flags *pflag.FlagSet, name, key string) {
	if err := flags.SetAnnotation(name, key, []string{"true"}); err != nil {
		panic("config: " + err.Error())
	}
}

// Load fills every setting that the command line left alone, from environ
// (as os.Environ returns it) and the file of --config or, without it, of the
// variable PREFIX_CONFIG. It is called once, after the flags are parsed.
//
// A value of the file or the environment that is wrong is an error also where
// a stronger source overrides it. An empty variable counts as not set. A
// variable with the prefix that no setting has is no error, because other
// programs use the same prefix; each is returned as a warning.
//
// After an error the settings are undefined.
func (s *Set) Load(environ []string) (warnings []string, err error) {
	env, warnings := s.environment(environ)
	if s.file == "" {
		s.file = env[s.variable("config")]
	}
	entries, err := s.readFile(s.file)
	if err != nil {
		return warnings, err
	}

	var errs []error
	for _, f := range s.settings() {
		errs = append(errs, s.load(f, entries, env))
	}
	return warnings, errors.Join(errs...)
}

// load sets f from all its sources, the weakest first.
func (s *Set) load(f *pflag.Flag, entries map[string]entry, env map[string]string) error {
	given, restore := f.Changed, restorer(f.Value)

	var errs []error
	if e, ok := entries[f.Name]; ok {
		if err := s.apply(f, e.value, e.where); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", e.where, f.Name, err))
		}
	}
	name := s.variable(f.Name)
	if text := env[name]; text != "" {
		if err := s.apply(f, value{text: text}, name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if given {
		s.origin[f.Name] = "--" + f.Name
		errs = append(errs, restore())
	}
	return errors.Join(errs...)
}

// PrintOnly reports whether the caller was asked to Print and exit.
func (s *Set) PrintOnly() bool { return s.printOnly }

// Origin says where a setting got its value: "default", "/etc/diagon.yaml:3",
// "DIAGON_RATE" or "--rate". It serves messages about values that Validate refused.
func (s *Set) Origin(name string) string {
	if o, ok := s.origin[name]; ok {
		return o
	}
	return "default"
}

// FlagError adds the nearest names to pflag's error about a flag that does not
// exist. It fits cobra's SetFlagErrorFunc.
func (s *Set) FlagError(err error) error { return FlagError(s.flags, err) }

// FlagError does the same for flags that are no settings.
func FlagError(flags *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("%w%s", err, didYouMean("--", unknown.GetSpecifiedName(), names))
}

// settings returns the flags that are settings, by name.
func (s *Set) settings() []*pflag.Flag {
	var all []*pflag.Flag
	s.flags.VisitAll(func(f *pflag.Flag) {
		// cobra declares help and version itself, and so late that nobody can annotate them.
		if f.Annotations[flagOnly] == nil && f.Name != "help" && f.Name != "version" {
			all = append(all, f)
		}
	})
	return all
}

func (s *Set) names() []string {
	var names []string
	for _, f := range s.settings() {
		names = append(names, f.Name)
	}
	return names
}

// variable is the environment's name of a setting.
func (s *Set) variable(name string) string {
	return s.prefix + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// environment returns the variables with the prefix, the last one of each name,
// and a warning for each that belongs to no setting.
func (s *Set) environment(environ []string) (env map[string]string, warnings []string) {
	known := []string{s.variable("config")}
	for _, name := range s.names() {
		known = append(known, s.variable(name))
	}

	env = make(map[string]string)
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, s.prefix+"_") {
			continue
		}
		if _, again := env[name]; !again && !slices.Contains(known, name) {
			warnings = append(warnings, fmt.Sprintf("%s: no such setting%s", name, s.nearest(name, known)))
		}
		env[name] = v
	}
	return env, warnings
}

// nearest compares without the prefix, which would make any two variables alike.
func (s *Set) nearest(variable string, known []string) string {
	bare := make([]string, len(known))
	for i, k := range known {
		bare[i] = strings.TrimPrefix(k, s.prefix+"_")
	}
	return didYouMean(s.prefix+"_", strings.TrimPrefix(variable, s.prefix+"_"), bare)
}

// A value is what a source says of a setting: a text, or a list.
type value struct {
	text string
	list []string
	many bool // list counts
}

// apply gives f the value v. The flag counts as changed from now on, so that
// cobra's required flags may come from the file or the environment.
func (s *Set) apply(f *pflag.Flag, v value, origin string) error {
	if err := assign(f.Value, v); err != nil {
		return refused(f, v, err)
	}
	f.Changed = true
	s.origin[f.Name] = origin
	return nil
}

func assign(to pflag.Value, v value) error {
	list, isList := to.(pflag.SliceValue)
	switch {
	case v.many && !isList:
		return errList
	case v.many:
		return list.Replace(v.list)
	case isList:
		// A second Set of a list adds to the first; here the stronger source replaces.
		if err := list.Replace(nil); err != nil {
			return err
		}
	}
	return to.Set(v.text)
}

var errList = errors.New("wants one value, not a list")

// restorer returns what puts the present value of v back.
func restorer(v pflag.Value) func() error {
	if list, ok := v.(pflag.SliceValue); ok {
		old := list.GetSlice()
		return func() error { return list.Replace(old) }
	}
	old := v.String()
	return func() error { return v.Set(old) }
}

// refused words err, which pflag or strconv gave for the value v of f.
func refused(f *pflag.Flag, v value, err error) error {
	if errors.Is(err, errList) {
		return err
	}
	if f.Annotations[secret] != nil {
		return fmt.Errorf("the value is not of type %s", f.Value.Type())
	}
	var num *strconv.NumError
	if errors.As(err, &num) {
		err = num.Err
	}
	if v.many {
		return fmt.Errorf("%.80q is not of type %s: %w", v.list, f.Value.Type(), err)
	}
	return fmt.Errorf("%.80q is not of type %s: %w", v.text, f.Value.Type(), err)
}
