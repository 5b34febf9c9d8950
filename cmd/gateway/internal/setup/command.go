package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// defaultFile is the name of the file unless another one is given.
const defaultFile = "watchtide.yaml"

// Tools are what the command is given by the command line.
type Tools struct {
	Stdout, Stderr io.Writer
	// Check returns what is wrong in a configuration.
	Check func(file string, text []byte) error
}

// Command returns the command init.
func Command(tools Tools) *cobra.Command {
	var o Options
	var force bool
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a configuration for the upstreams that it finds",
		Long: `Write a configuration, watchtide.yaml unless FILE names another one (- is stdout), for
the upstreams that it finds, with a watch for what each of them has:

  etcd        at ETCDCTL_ENDPOINTS, or 127.0.0.1:2379
  Consul      at CONSUL_HTTP_ADDR, or 127.0.0.1:8500
  NATS        at NATS_URL, or 127.0.0.1:4222
  PostgreSQL  at DATABASE_URL
  Kubernetes  by KUBECONFIG, ~/.kube/config, or the service account of the pod

Each has 3 s to answer, and nothing is written to it. With --etcd, --consul, --nats,
--postgres, --kubernetes or --dir only those that are named are looked at. An existing
file is left alone, unless --force is given.`,
		Example: `  watchtide init
  watchtide init --etcd https://etcd-1:2379,https://etcd-2:2379
  watchtide init --dir ./flags flags.yaml
  watchtide init - | less`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := defaultFile
			if len(args) == 1 {
				file = args[0]
			}
			return tools.write(cmd.Context(), file, o, force)
		},
	}
	o.Register(c.Flags())
	_ = c.MarkFlagDirname("dir")
	_ = c.MarkFlagFilename("kubernetes")
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return c
}

// write finds upstreams and writes the file.
func (t Tools) write(ctx context.Context, file string, o Options, force bool) error {
	if _, err := os.Stat(file); err == nil && !force && file != "-" {
		return exists(file)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // there is no kubeconfig in it
	}
	sources := Find(ctx, o, Local(os.Getenv, home))
	if file == "-" {
		text := Text(defaultFile, sources)
		if err := t.Check(defaultFile, []byte(text)); err != nil {
			return err
		}
		if _, err := io.WriteString(t.Stdout, text); err != nil {
			return err
		}
		return report(t.Stderr, sources)
	}
	text := Text(file, sources)
	if err := t.Check(file, []byte(text)); err != nil {
		return err
	}
	if err := create(file, text, force); err != nil {
		return err
	}
	if err := report(t.Stdout, sources); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.Stdout, "%s is written. To serve it:\n  watchtide serve --config %[1]s\n", file)
	return err
}

func exists(file string) error {
	return fmt.Errorf("%s exists, and was left alone: want another name, or --force to replace it", file)
}

func create(file, text string, force bool) error {
	flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if force {
		flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return exists(file)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// report says what was found, in one line for each source.
func report(out io.Writer, sources []Source) error {
	for _, s := range sources {
		var names []string
		for _, w := range s.Watches {
			names = append(names, w.Name)
		}
		line := fmt.Sprintf("%s, %s: %s", s.Type, s.Where, strings.Join(names, ", "))
		if s.Problem != nil {
			line = fmt.Sprintf("%s, %s: it did not say what it has: %s", s.Type, s.Where, firstLine(s.Problem))
		}
		if _, err := fmt.Fprintln(out, printable(line)); err != nil {
			return err
		}
	}
	return nil
}
