/// Every word that the grammar mentions. A word that is not here is a plain identifier.
///
/// The classes are PostgreSQL's (its appendix C): they say where a word may still be a name. Words that Millrace adds
/// to PostgreSQL's are all unreserved, so no statement that PostgreSQL accepts changes its meaning.
package enum Keyword: String, Sendable, Hashable, CaseIterable {
    // Reserved: only ever a label after AS.
    case
        all, analyse, analyze, and, `any`, array, `as`, asc, asymmetric, both, `case`, cast, check, collate, column, constraint,
        create, currentCatalog = "current_catalog", currentDate = "current_date", currentRole = "current_role",
        currentTime = "current_time", currentTimestamp = "current_timestamp", currentUser = "current_user", `default`, deferrable,
        desc, distinct, doWord = "do", `else`, end, except, `false`, fetch, `for`, foreign, from, grant, group, having, `in`,
        initially, intersect, into, lateral, leading, limit, localtime, localtimestamp, not, null, offset, on, only, or, order,
        placing, primary, references, returning, select, sessionUser = "session_user", `some`, symmetric, table, then, to, trailing,
        `true`, union, unique, user, using, variadic, when, `where`, window, with

    // Reserved, but may name a function or a type.
    case
        authorization, collation, concurrently, cross, currentSchema = "current_schema", full, ilike, inner, `is`, isnull, join,
        left, like, natural, notnull, outer, overlaps, right, similar, tablesample, verbose

    // May name a column or a table, not a function or a type.
    case
        between, bigint, bit, boolean, char, character, coalesce, dec, decimal, exists, extract, float, greatest, grouping, int,
        integer, interval, least, national, nchar, none, nullif, numeric, overlay, position, precision, real, row, smallint,
        substring, time, timestamp, trim, tryCast = "try_cast", values, varchar

    // Free.
    case
        abort, absolute, action, add, alter, always, append, asof, at, backward, begin, binary, by, cancel, cascade, chain,
        catalog, catalogs, characteristics, close, cluster, columns, comment, commit, committed, conflict, connection, connections, copy, cube,
        current, cursor, cursors, database, databases, day, deallocate, declare, delete, describe, discard, distributed, double,
        drop, emit, encode, escape, exclude, execute, explain, file, filter, first, flush, following, format, forward, function,
        functions, generated, groups, header, hold, hour, identity, `if`, include, index, indexes, insensitive, insert, internalWord = "internal",
        isolation, job, jobs, key, last, level, local, map, materialized, minute, month, move, next, no, nothing, nulls, of,
        `operator`, option, ordinality, others, over, overwrite, owner, parallelism, parameters, partition, pause, plain, plans,
        preceding, prepare, prior, processlist, range, read, rebuild, recursive, rejects, relative, release, rename, repeatable, replace,
        replay, reset, restrict, resume, rollback, rollup, rows, savepoint, schema, schemas, scroll, second, secret, secrets, sequences,
        serializable, session, set, sets, show, since, sink, sinks, source, sources, start, stdin, stdout, stored, `struct`,
        subscription, subscriptions, systemTime = "system_time", systemVersion = "system_version", tables, temp, temporary, ties, transaction, truncate, uescape,
        unbounded, uncommitted, unknown, update, varying, version, view, views, wait, watermark, within, without, work, write, year,
        zone

    package enum Category: Sendable {
        case reserved, typeOrFunction, columnName, unreserved
    }

    /// Keywords by their text in lower case.
    static let byText = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

    package var category: Category {
        switch self {
        case
            .all, .analyse, .analyze, .and, .any, .array, .as, .asc, .asymmetric, .both, .case, .cast, .check, .collate, .column,
            .constraint, .create, .currentCatalog, .currentDate, .currentRole, .currentTime, .currentTimestamp, .currentUser,
            .default, .deferrable, .desc, .distinct, .doWord, .else, .end, .except, .false, .fetch, .for, .foreign, .from, .grant,
            .group, .having, .in, .initially, .intersect, .into, .lateral, .leading, .limit, .localtime, .localtimestamp, .not,
            .null, .offset, .on, .only, .or, .order, .placing, .primary, .references, .returning, .select, .sessionUser, .some,
            .symmetric, .table, .then, .to, .trailing, .true, .union, .unique, .user, .using, .variadic, .when, .where, .window,
            .with:
            .reserved
        case
            .authorization, .collation, .concurrently, .cross, .currentSchema, .full, .ilike, .inner, .is, .isnull, .join, .left,
            .like, .natural, .notnull, .outer, .overlaps, .right, .similar, .tablesample, .verbose:
            .typeOrFunction
        case
            .between, .bigint, .bit, .boolean, .char, .character, .coalesce, .dec, .decimal, .exists, .extract, .float, .greatest,
            .grouping, .int, .integer, .interval, .least, .national, .nchar, .none, .nullif, .numeric, .overlay, .position,
            .precision, .real, .row, .smallint, .substring, .time, .timestamp, .trim, .tryCast, .values, .varchar:
            .columnName
        default:
            // Every word of the fourth group above.
            .unreserved
        }
    }

    /// May label a column of a SELECT list without AS.
    package var mayBeBareLabel: Bool {
        switch self {
        case
            .array, .as, .char, .character, .create, .day, .except, .fetch, .filter, .for, .from, .grant, .group, .having, .hour,
            .intersect, .into, .isnull, .limit, .minute, .month, .notnull, .offset, .on, .order, .over, .overlaps, .precision,
            .returning, .second, .to, .union, .varying, .where, .window, .with, .within, .without, .year:
            false
        default:
            true
        }
    }

    /// As it is printed.
    package var upper: String { rawValue.uppercased() }
}
