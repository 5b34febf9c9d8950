package postgres

import "context"

// Check reports what a database lacks for a watch of a table, with the statement that provides it. It changes
// nothing. What manage adds by itself is not lacking.
func (u *Upstream) Check(ctx context.Context, t Table) error {
	ctx, cancel := u.config.limit(ctx)
	defer cancel()
	return u.failed(because(ctx, u.lacks(ctx, t)))
}

func (u *Upstream) lacks(ctx context.Context, t Table) error {
	conn, err := u.config.connect(ctx, false)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	asked := queries{conn, &u.config}
	if u.config.Manage {
		if _, err := checkServer(ctx, asked, t); err != nil {
			return err
		}
		schema, name, _ := parseTable(t.Name)
		if _, _, err := find(ctx, asked, schema, name); err != nil {
			return err
		}
	} else if _, err := describe(ctx, asked, t, u.config.Publication); err != nil {
		return err
	}
	sender, err := u.config.connect(ctx, true) // needs the right to replicate
	if err != nil {
		return err
	}
	closeConn(sender)
	return nil
}
