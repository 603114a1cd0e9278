// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a file. The YAML parser takes quadratic time and memory in the depth
// of nesting: 16 KiB of "[" cost it 4 s and 400 MB, a bigger file the machine.
const (
	maxFileBytes = 64 << 10
	maxNesting   = 8
	maxErrors    = 8 // shown at once
)

// An entry is what a file says of one setting.
type entry struct {
	value value
	where string // "diagon.yaml:3"
}

// readFile reads the settings in the file at path; no path, no settings.
func (s *Set) readFile(path string) (map[string]entry, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: larger than %d bytes: not a configuration file", path, maxFileBytes)
	}
	return parse(path, data, s.names())
}

// parse understands the bytes of a configuration file. Its errors name the line
// and, where a key is unknown, the nearest of the known ones.
func parse(path string, data []byte, known []string) (map[string]entry, error) {
	at := func(t *token.Token) string {
		if t == nil || t.Position == nil {
			return path
		}
		return fmt.Sprintf("%s:%d", path, t.Position.Line)
	}
	if t := tooDeep(data); t != nil {
		return nil, fmt.Errorf("%s: nested too deep", at(t))
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%s: %s", at(bad.GetToken()), bad.GetMessage())
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	settings := make(map[string]entry)
	var errs []error
	for _, doc := range file.Docs {
		pairs, err := pairsOf(doc.Body)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at(doc.Body.GetToken()), err))
		}
		for _, pair := range pairs {
			if len(errs) == maxErrors {
				return nil, errors.Join(append(errs, fmt.Errorf("%s: and perhaps more", path))...)
			}
			where, key := at(pair.Key.GetToken()), pair.Key.GetToken().Value
			if !slices.Contains(known, key) {
				errs = append(errs, fmt.Errorf("%s: unknown key %.80q%s", where, key, didYouMean("", key, known)))
				continue
			}
			if _, twice := settings[key]; twice {
				errs = append(errs, fmt.Errorf("%s: %s is given twice", where, key))
				continue
			}
			v, err := valueOf(pair.Value)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", where, key, err))
				continue
			}
			settings[key] = entry{value: v, where: where}
		}
	}
	return settings, errors.Join(errs...)
}

// tooDeep returns the token at which data nests deeper than maxNesting, if one does.
// Nesting by indentation needs a line for each level and stays cheap for a file of this size.
func tooDeep(data []byte) *token.Token {
	var brackets, inLine, line int
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Position.Line != line {
			line, inLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			inLine++
		}
		if brackets > maxNesting || inLine > maxNesting {
			return t
		}
	}
	return nil
}

// pairsOf returns the keys and values of a document, which may be empty.
func pairsOf(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode, *ast.DirectiveNode:
		return nil, nil
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, errors.New("wants lines of the form key: value")
}

// valueOf takes the text of a value as it is written: whether 10 is a number or
// a name is for the flag to say.
func valueOf(n ast.Node) (value, error) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		v := value{many: true, list: []string{}}
		for _, item := range seq.Values {
			text, err := textOf(item)
			if err != nil {
				return value{}, err
			}
			v.list = append(v.list, text)
		}
		return v, nil
	}
	text, err := textOf(n)
	return value{text: text}, err
}

func textOf(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), nil
	case *ast.NullNode:
		return "", errors.New("has no value; leave the line out for the default, or write \"\" for nothing")
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return "", errors.New("wants a value, not a nested one")
	}
	return "", errors.New("wants a plain value: anchors, aliases and tags are not read")
}
