// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"diagon.dev/diagon/cmd/diagon/internal/losses"
)

// A Screen is the live table on a terminal. It is a tea.Model; tables come as messages.
type Screen struct {
	what   string // what is watched: "this host at 99 Hz"
	cpus   int
	by     By
	paused bool
	seen   bool  // a table has come
	table  Table // the one shown
	latest Table // the newest, while paused
	first  int   // line at the top
	width  int
	height int
}

// NewScreen shows tables of a host with that many CPUs.
func NewScreen(what string, cpus int, by By) Screen {
	return Screen{what: what, cpus: cpus, by: by, width: 80, height: 24}
}

// Init starts nothing: tables are sent to the program.
func (s Screen) Init() tea.Cmd { return nil }

// Update takes a table, a key, or a new size.
func (s Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case Table:
		s.latest, s.seen = msg, true
		if !s.paused {
			s.table = msg
		}
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return s.key(msg)
	}
	s.first = s.clamp(s.first)
	return s, nil
}

func (s Screen) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k.String() {
	case "q", "esc", "ctrl+c":
		return s, tea.Quit
	case "p":
		s.by, s.first = ByProcess, 0
	case "f":
		s.by, s.first = ByFunction, 0
	case "tab":
		s.by, s.first = 1-s.by, 0
	case "space":
		s.paused = !s.paused
		s.table = s.latest
	case "down", "j":
		s.first++
	case "up", "k":
		s.first--
	case "pgdown":
		s.first += s.room()
	case "pgup":
		s.first -= s.room()
	case "home", "g":
		s.first = 0
	}
	s.first = s.clamp(s.first)
	return s, nil
}

// room is how many lines of the table fit between head and foot.
func (s Screen) room() int { return max(1, s.height-4) }

func (s Screen) clamp(first int) int {
	lines := len(s.table.Functions)
	if s.by == ByProcess {
		lines = len(s.table.Processes)
	}
	return max(0, min(first, lines-s.room()))
}

var (
	headStyle  = ansi.NewStyle().Bold()
	titleStyle = ansi.NewStyle().Reverse(true)
	footStyle  = ansi.NewStyle().Faint()
	lostStyle  = ansi.NewStyle().ForegroundColor(ansi.Red).Bold()
)

// View is the whole screen, beside what the terminal showed before.
func (s Screen) View() tea.View {
	view := tea.NewView(s.content())
	view.AltScreen = true
	return view
}

func (s Screen) content() string {
	if !s.seen {
		return headStyle.Styled(ansi.Truncate("watching "+s.what+" …", s.width, "…")) + "\n"
	}
	head := headStyle
	if losses.Lost(s.table.Losses) {
		head = lostStyle
	}
	title := s.table.Title(s.by, s.width)
	lines := []string{
		head.Styled(ansi.Truncate(s.table.Head(s.cpus), s.width, "…")),
		titleStyle.Styled(title + strings.Repeat(" ", max(0, s.width-ansi.StringWidth(title)))),
	}
	table := s.table.Lines(s.by, s.first+s.room(), s.width)
	table = table[min(s.first, len(table)):]
	lines = append(lines, table...)
	for range s.room() - len(table) {
		lines = append(lines, "")
	}
	lines = append(lines, "", footStyle.Styled(ansi.Truncate(s.foot(), s.width, "…")))
	return strings.Join(lines, "\n")
}

func (s Screen) foot() string {
	other, pause := "p processes", "space pause"
	if s.by == ByProcess {
		other = "f functions"
	}
	if s.paused {
		pause = "PAUSED, space goes on"
	}
	return "q quit   " + other + "   " + pause + "   ↑↓ scroll   " + s.what
}
