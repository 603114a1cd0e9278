// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
)

// A Selection says which samples, and how the answer is to be written.
type Selection struct {
	Type     string // sample type: "cpu"
	Query    string // label matchers: {node="n"}
	From, To string // now-5m, RFC 3339, Unix seconds
	Format   string
	Capture  string // samples of this capture only; "" for all
	MaxNodes int    // of a flame graph; 0: as the server likes
}

func (s Selection) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"type": s.Type, "query": s.Query, "from": s.From, "to": s.To, "format": s.Format, "capture": s.Capture} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if s.MaxNodes > 0 {
		v.Set("max_nodes", strconv.Itoa(s.MaxNodes))
	}
	return v
}

// maxProfile bounds an answer that is passed on as it comes.
const maxProfile = 4 << 30

// Profile writes the server's answer to w.
func (c *Client) Profile(ctx context.Context, s Selection, w io.Writer) error {
	resp, err := c.ask(ctx, downloadTime, http.MethodGet, "/profiles", s.values(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return c.stranger(resp)
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, maxProfile+1))
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if n > maxProfile {
		return errors.New("profile: the answer is larger than 4 GiB; ask for less time")
	}
	return nil
}

// A Top is the table of hottest functions.
type Top struct {
	Type   string `json:"type"`
	Unit   string `json:"unit"`
	Total  int64  `json:"total"`
	Rows   []Row  `json:"rows"`
	Cut    *Cut   `json:"cut"`
	Losses []Loss `json:"losses"`
}

// A Row is a function.
type Row struct {
	Function string `json:"function"`
	Module   string `json:"module"`
	File     string `json:"file"`
	Realm    string `json:"realm"`
	Self     int64  `json:"self"`
	Total    int64  `json:"total"`
}

// A Cut says what an answer leaves out.
type Cut struct {
	Nodes int   `json:"nodes"`
	Value int64 `json:"value"`
}

// Top asks for the table.
func (c *Client) Top(ctx context.Context, s Selection) (Top, error) {
	s.Format = "top"
	var got Top
	return got, c.askJSON(ctx, http.MethodGet, "/profiles", s.values(), nil, &got)
}
