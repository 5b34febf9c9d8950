package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// linkedVersion and linkedCommit are those of a release, set once by Main.
var linkedVersion, linkedCommit string

// buildVersion returns the version, as linked, or as recorded by the go command.
func buildVersion() string {
	if linkedVersion != "" {
		return linkedVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// userAgent is what the commands call themselves in requests.
func userAgent() string { return "watchtide/" + buildVersion() }

// buildCommit returns the commit, as linked, or as recorded by the go command.
func buildCommit() string {
	if linkedCommit != "" {
		return linkedCommit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func versionLine() string {
	return fmt.Sprintf("watchtide gateway %s (commit %s, %s, %s/%s)",
		buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, versionLine())
			return err
		},
	}
}
