// Package host is the source of this machine: its processes, its network
// interfaces and its mounts, each as one collection.
//
// A [Source] polls the operating system at an interval and sends the
// differences from the last poll. Each poll with changes is one transaction
// with one revision, the next of a sequence of this Source; a poll without
// changes sends nothing. The sequence starts over with each Source, and so the
// epoch is random: a subscriber of an earlier one gets a reset.
//
// # Values
//
// A value is a JSON object. Sizes are bytes, times are RFC 3339 in UTC, shares
// are per cent with one decimal.
//
//   - [Processes], by process id: pid, parent_pid, name, state, user,
//     cpu_percent, resident_bytes, start_time.
//   - [Interfaces], by name: name, index, mtu, hardware_address, flags, and for
//     received and sent each bytes, packets, errors and dropped, as counted
//     since the interface came up.
//   - [Mounts], by mount point: mount_point, device, file_system, options, and
//     total_bytes, used_bytes, available_bytes, used_percent, total_inodes and
//     used_inodes, or usage_error instead of these six.
//
// # What is never shown
//
// The command line and the environment of a process hold secrets. They are not
// filtered out: they are never read. For the same reason the name is the one
// that the kernel keeps (on Linux at most 15 bytes, for a process) and not the
// longer one that some tools take from the command line. On other systems than
// Linux, where the kernel's name is not available without the command line, it
// is the file name of the executable.
//
// # What is left out
//
// A process that ends while it is read, or that is invisible to this process,
// is skipped. File systems that store nothing (proc, sysfs, cgroup and the
// like) are skipped. Of several mounts on one mount point only the topmost
// shows. A mount whose usage cannot be read is shown with the reason. One that
// does not answer in time delays nothing: the other mounts of that poll do not
// wait for it, and it is not queried again while its first answer is due.
//
// # Goroutines
//
// Everything runs on the goroutine that calls Watch, except the requests for
// the usage of mounts: each has a goroutine of its own, since the kernel does
// not allow cancelling a statfs of a network file system whose server is gone.
// Watch waits for all of them, except for those that did not answer in time: at
// most one for each mount, which end when the kernel answers or the mount goes.
package host
