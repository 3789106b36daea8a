package clustertest

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// commandTable lists what Redis 7.0.15 answers to COMMAND, for the commands that
// a clustertest node knows. A line: name, arity, flags, first key, last key, step, tips.
// A negative arity means "at least"; a negative last key counts from the end.
//
//go:embed commands.txt
var commandTable string

// A command is what a node must know of a command before it runs it.
type command struct {
	index             int // in commandList, for the counters
	name              string
	arity             int
	flags             []string
	first, last, step int
	tips              []string
	write             bool
	noScript          bool
}

var (
	commandList  = parseCommands(commandTable)
	commandNames = indexCommands(commandList)
)

func parseCommands(table string) []*command {
	var list []*command
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		c := &command{index: len(list), name: strings.ToUpper(f[0]), flags: words(f[2]), tips: words(f[6])}
		for i, into := range map[int]*int{1: &c.arity, 3: &c.first, 4: &c.last, 5: &c.step} {
			n, err := strconv.Atoi(f[i])
			if err != nil {
				panic("clustertest: commands.txt: " + line)
			}
			*into = n
		}
		c.write = slices.Contains(c.flags, "write")
		c.noScript = slices.Contains(c.flags, "noscript")
		list = append(list, c)
	}
	return list
}

func words(s string) []string {
	if s == "-" {
		return nil
	}
	return strings.Split(s, ",")
}

func indexCommands(list []*command) map[string]*command {
	names := make(map[string]*command, len(list))
	for _, c := range list {
		names[c.name] = c
	}
	return names
}

// lookup finds a command by its name in any case, or nil.
func lookup(name string) *command {
	if c, ok := commandNames[name]; ok {
		return c
	}
	return commandNames[strings.ToUpper(name)]
}

// fits says whether a call with n words, the name included, has the right number of them.
func (c *command) fits(n int) bool {
	if c.arity >= 0 {
		return n == c.arity
	}
	return n >= -c.arity
}

// keys returns the keys that a call names. A call whose key count makes no sense
// has none here; the command itself then answers what is wrong with it.
func (c *command) keys(args []string) []string {
	switch c.name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		return counted(args, 2)
	case "ZUNION", "ZINTER", "SINTERCARD", "LMPOP", "ZMPOP":
		return counted(args, 1)
	case "BZMPOP":
		return counted(args, 2)
	case "ZUNIONSTORE", "ZINTERSTORE":
		return append([]string{args[1]}, counted(args, 2)...)
	case "XREAD", "XREADGROUP":
		return streams(args)
	case "OBJECT", "XGROUP", "XINFO", "MEMORY":
		if len(args) > 2 {
			return args[2:3]
		}
		return nil
	case "MIGRATE", "BITOP":
		return c.rareKeys(args)
	}
	return c.span(args)
}

func (c *command) rareKeys(args []string) []string {
	if c.name == "BITOP" {
		return args[2:]
	}
	if args[3] != "" {
		return args[3:4]
	}
	for i, a := range args {
		if strings.EqualFold(a, "KEYS") && i > 3 {
			return args[i+1:]
		}
	}
	return nil
}

// span returns the keys of a command that has them at fixed places.
func (c *command) span(args []string) []string {
	if c.first == 0 {
		return nil
	}
	last := c.last
	if last < 0 {
		last += len(args)
	}
	last = min(last, len(args)-1)
	if c.step == 1 {
		return args[c.first : last+1]
	}
	var keys []string
	for i := c.first; i <= last; i += c.step {
		keys = append(keys, args[i])
	}
	return keys
}

// counted returns the keys that follow the word at `at`, which says how many they are.
func counted(args []string, at int) []string {
	n, err := strconv.Atoi(args[at])
	if err != nil || n < 0 || n > len(args)-at-1 {
		return nil
	}
	return args[at+1 : at+1+n]
}

func streams(args []string) []string {
	for i, a := range args {
		if strings.EqualFold(a, "STREAMS") {
			rest := args[i+1:]
			return rest[:len(rest)/2]
		}
	}
	return nil
}

// describe answers COMMAND, COMMAND COUNT and COMMAND INFO.
func describe(out *reply, args []string) {
	list := commandList
	if len(args) > 1 {
		switch strings.ToUpper(args[1]) {
		case "COUNT":
			out.integer(int64(len(list)))
			return
		case "INFO":
			list = nil
			for _, name := range args[2:] {
				list = append(list, lookup(name))
			}
		default:
			out.fail(errSubcommand("COMMAND", args[1]))
			return
		}
	}
	out.array(len(list))
	for _, c := range list {
		c.describe(out)
	}
}

func (c *command) describe(out *reply) {
	if c == nil {
		out.nullArray()
		return
	}
	out.array(10)
	out.bulk(strings.ToLower(c.name))
	out.integer(int64(c.arity))
	out.array(len(c.flags))
	for _, f := range c.flags {
		out.status(f)
	}
	out.integer(int64(c.first))
	out.integer(int64(c.last))
	out.integer(int64(c.step))
	out.array(0) // ACL categories
	out.array(len(c.tips))
	for _, tip := range c.tips {
		out.bulk(tip)
	}
	out.array(0) // key specifications
	out.array(0) // subcommands
}
