package realserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// postgresUser is who runs a PostgreSQL server, which refuses to be root.
const postgresUser = "postgres"

// postgresBin is the environment variable that names the folder of the programs of another version of
// PostgreSQL than the newest one of this machine.
const postgresBin = "WATCHTIDE_POSTGRES_BIN"

// StartPostgres starts a PostgreSQL server of this machine, whose newest version counts unless
// WATCHTIDE_POSTGRES_BIN names the folder of another one, with an empty cluster and logical decoding. It ends with the test, which is skipped if none is installed. Settings
// are as in "max_wal_senders=3". Anybody can be its superuser, postgres.
func StartPostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	c := postgresCommand(t, settings)
	t.Cleanup(func() { os.RemoveAll(c.Remove) })
	return c.Start(t)
}

// CopyPostgres makes a base backup of a running server, and returns the command of a server with it, whose
// address is another one. A standby follows the first server until it is promoted; any other copy is the server
// as it was restored from the backup, and begins a timeline of its own.
func CopyPostgres(t testing.TB, of *Server, standby bool, settings ...string) Command {
	t.Helper()
	parent, err := os.MkdirTemp("", "watchtide-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	as, err := attributes(postgresUser)
	if err == nil {
		err = os.Chmod(parent, 0o777) // the user makes the folder
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "data")
	args := []string{"-d", "postgres://postgres@" + of.Addr() + "/postgres?sslmode=disable", "-D", dir, "-X", "stream", "-c", "fast", "--no-sync"}
	if standby {
		args = append(args, "-R")
	}
	cmd := exec.Command(postgresProgram(t, "pg_basebackup"), args...)
	cmd.SysProcAttr, cmd.Dir = as, parent
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	if !standby {
		settings = append(settings, "restore_command=false", "recovery_target_action=promote")
		if err := os.WriteFile(filepath.Join(dir, "recovery.signal"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return postgresIn(t, dir, settings)
}

// SharedPostgres is StartPostgres for a server that all tests of a package use. See [Shared].
func SharedPostgres(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if s := shared.servers[postgresUser]; s != nil && s.Alive() {
		return s
	}
	s, err := postgresCommand(t, nil).start()
	if err != nil {
		t.Fatal(err)
	}
	if shared.servers == nil {
		shared.servers = map[string]*Server{}
	}
	shared.servers[postgresUser] = s
	return s
}

// postgresCommand makes a cluster, and returns the command of its server.
func postgresCommand(t testing.TB, settings []string) Command {
	t.Helper()
	initdb := postgresProgram(t, "initdb")
	parent, dir, err := newCluster(initdb)
	if err != nil {
		t.Fatal(err)
	}
	c := postgresIn(t, dir, settings)
	c.Remove = parent
	return c
}

// postgresIn returns the command of a server of a cluster.
func postgresIn(t testing.TB, dir string, settings []string) Command {
	t.Helper()
	port := FreePort(t)
	args := []string{"-D", dir}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=", "wal_level=logical", "fsync=off",
		"max_connections=200", "max_wal_senders=40", "max_replication_slots=40",
	}, settings...) {
		args = append(args, "-c", setting)
	}
	return Command{Path: postgresProgram(t, "postgres"), Args: args, Address: Address(port), User: postgresUser, Dir: dir}
}

// postgresProgram returns the path of a program of PostgreSQL, which Debian keeps out of the PATH.
func postgresProgram(t testing.TB, name string) string {
	t.Helper()
	if bin := os.Getenv(postgresBin); bin != "" {
		path := filepath.Join(bin, name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s has no %s: %v", postgresBin, name, err)
		}
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return Installed(t, name)
	}
	return slices.MaxFunc(found, func(a, b string) int { return versionIn(a) - versionIn(b) })
}

// versionIn returns the version in the path of a program, such as /usr/lib/postgresql/15/bin/postgres.
func versionIn(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// newCluster makes an empty cluster, in a folder in a folder of its own.
func newCluster(initdb string) (parent, dir string, err error) {
	if parent, err = os.MkdirTemp("", "watchtide-postgres-"); err != nil {
		return "", "", err
	}
	as, err := attributes(postgresUser)
	if err == nil {
		err = os.Chmod(parent, 0o777) // the user makes the folder
	}
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(parent, "data")
	cmd := exec.Command(initdb, "-D", dir, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	cmd.SysProcAttr, cmd.Dir = as, parent
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return parent, dir, nil
}
