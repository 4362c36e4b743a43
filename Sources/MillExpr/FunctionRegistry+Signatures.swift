/// The tables of the registry. Names that operators stand for are words; the symbols are in `binaryOperators`.
extension FunctionRegistry {
    static let binaryOperators: [String: String] = [
        "=": "equal", "<>": "not_equal", "!=": "not_equal", "<": "less", "<=": "less_or_equal", ">": "greater", ">=": "greater_or_equal",
        "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "^": "power",
        "&": "bit_and_of", "|": "bit_or_of", "#": "bit_xor_of", "<<": "shift_left", ">>": "shift_right",
        "||": "concatenate", "~~": "like", "!~~": "not_like", "~~*": "ilike", "!~~*": "not_ilike",
        "~": "matches", "~*": "imatches", "!~": "not_matches", "!~*": "not_imatches", "^@": "starts_with",
        "->": "json_get", "->>": "json_get_text", "#>": "json_path", "#>>": "json_path_text", "?": "json_has_key",
    ]

    static let prefixOperators: [String: String] = ["-": "negate", "+": "plus", "@": "abs", "~": "bit_not_of", "|/": "sqrt", "||/": "cbrt"]

    /// Comparisons of a type with itself, and of the pairs that PostgreSQL compares without a cast in the statement.
    static let comparisonSignatures: String = {
        let types = [
            "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "bytea", "date", "time", "timestamp", "timestamptz", "interval", "jsonb",
        ]
        let mixed = [
            ("int2", "int4", "int4"), ("int2", "int8", "int8"), ("int4", "int8", "int8"), ("float4", "float8", "float8"), ("date", "timestamp", "timestamp"),
            ("date", "timestamptz", "timestamptz"), ("timestamp", "timestamptz", "timestamptz"),
        ]
        var lines: [String] = []
        for name in ["equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"] {
            for type in types { lines.append("\(name)(\(type), \(type)) -> bool") }
            for (a, b, target) in mixed {
                lines.append("\(name)(\(a) => \(target), \(b) => \(target)) -> bool")
                lines.append("\(name)(\(b) => \(target), \(a) => \(target)) -> bool")
            }
        }
        return lines.joined(separator: "\n")
    }()

    /// Arithmetic on numbers; what mixes with dates is in `dateTimeSignatures`.
    static let arithmeticSignatures: String = {
        let mixedIntegers = [("int2", "int4", "int4"), ("int2", "int8", "int8"), ("int4", "int8", "int8")]
        var lines: [String] = []
        for name in ["add", "subtract", "multiply", "divide"] {
            for type in ["int2", "int4", "int8", "float4", "float8", "numeric"] { lines.append("\(name)(\(type), \(type)) -> \(type)") }
            for (a, b, target) in mixedIntegers + [("float4", "float8", "float8")] {
                lines.append("\(name)(\(a) => \(target), \(b) => \(target)) -> \(target)")
                lines.append("\(name)(\(b) => \(target), \(a) => \(target)) -> \(target)")
            }
        }
        for name in ["modulo", "mod"] {
            for type in ["int2", "int4", "int8", "numeric"] { lines.append("\(name)(\(type), \(type)) -> \(type)") }
        }
        for name in ["bit_and_of", "bit_or_of", "bit_xor_of"] {
            for type in ["int2", "int4", "int8"] { lines.append("\(name)(\(type), \(type)) -> \(type)") }
        }
        for type in ["int2", "int4", "int8"] {
            lines += ["shift_left(\(type), int4) -> \(type)", "shift_right(\(type), int4) -> \(type)", "bit_not_of(\(type)) -> \(type)"]
        }
        for type in ["int2", "int4", "int8", "float4", "float8", "numeric"] {
            lines += ["negate(\(type)) -> \(type)", "plus(\(type)) -> \(type)", "abs(\(type)) -> \(type)"]
        }
        return lines.joined(separator: "\n")
    }()

    static let mathSignatures = """
        ceil(float8) -> float8
        ceil(numeric) -> numeric
        ceiling(float8) -> float8
        ceiling(numeric) -> numeric
        floor(float8) -> float8
        floor(numeric) -> numeric
        round(float8) -> float8
        round(numeric) -> numeric
        round(numeric, int4) -> numeric
        trunc(float8) -> float8
        trunc(numeric) -> numeric
        trunc(numeric, int4) -> numeric
        sign(float8) -> float8
        sign(numeric) -> numeric
        sqrt(float8) -> float8
        cbrt(float8) -> float8
        power(float8, float8) -> float8
        pow(float8, float8) -> float8
        exp(float8) -> float8
        ln(float8) -> float8
        log(float8) -> float8
        log10(float8) -> float8
        sin(float8) -> float8
        cos(float8) -> float8
        tan(float8) -> float8
        asin(float8) -> float8
        acos(float8) -> float8
        atan(float8) -> float8
        atan2(float8, float8) -> float8
        degrees(float8) -> float8
        radians(float8) -> float8
        pi() -> float8
        """

    static let stringSignatures = """
        concatenate(text, text) -> text
        concatenate(text, any) -> text
        concatenate(any, text) -> text
        concatenate(bytea, bytea) -> bytea
        concat(variadic any) -> text
        concat_ws(text, variadic any) -> text
        length(text) -> int4
        length(bytea) -> int4
        char_length(text) -> int4
        character_length(text) -> int4
        octet_length(text) -> int4
        octet_length(bytea) -> int4
        bit_length(text) -> int4
        lower(text) -> text
        upper(text) -> text
        initcap(text) -> text
        btrim(text) -> text
        btrim(text, text) -> text
        ltrim(text) -> text
        ltrim(text, text) -> text
        rtrim(text) -> text
        rtrim(text, text) -> text
        trim(text) -> text
        trim(text, text) -> text
        substr(text, int4) -> text
        substr(text, int4, int4) -> text
        substring(text, int4) -> text
        substring(text, int4, int4) -> text
        substring(text, text) -> text
        overlay(text, text, int4) -> text
        overlay(text, text, int4, int4) -> text
        left(text, int4) -> text
        right(text, int4) -> text
        replace(text, text, text) -> text
        translate(text, text, text) -> text
        reverse(text) -> text
        repeat(text, int4) -> text
        lpad(text, int4) -> text
        lpad(text, int4, text) -> text
        rpad(text, int4) -> text
        rpad(text, int4, text) -> text
        position(text, text) -> int4
        strpos(text, text) -> int4
        split_part(text, text, int4) -> text
        starts_with(text, text) -> bool
        ascii(text) -> int4
        chr(int4) -> text
        md5(text) -> text
        to_hex(int4) -> text
        to_hex(int8) -> text
        encode(bytea, text) -> text
        decode(text, text) -> bytea
        convert_from(bytea, text) -> text
        quote_literal(text) -> text
        quote_ident(text) -> text
        like(text, text) -> bool
        like(text, text, text) -> bool
        not_like(text, text) -> bool
        not_like(text, text, text) -> bool
        ilike(text, text) -> bool
        ilike(text, text, text) -> bool
        not_ilike(text, text) -> bool
        not_ilike(text, text, text) -> bool
        matches(text, text) -> bool
        imatches(text, text) -> bool
        not_matches(text, text) -> bool
        not_imatches(text, text) -> bool
        regexp_like(text, text) -> bool
        regexp_like(text, text, text) -> bool
        regexp_replace(text, text, text) -> text
        regexp_replace(text, text, text, text) -> text
        regexp_count(text, text) -> int4
        regexp_substr(text, text) -> text
        regexp_match_group(text, text, int4) -> text
        regexp_match_group(text, text, text, int4) -> text
        """

    static let dateTimeSignatures = """
        add(date, int4) -> date
        add(int4, date) -> date
        add(date => timestamp, interval) -> timestamp
        add(interval, date => timestamp) -> timestamp
        add(date, time) -> timestamp
        add(time, date) -> timestamp
        add(timestamp, interval) -> timestamp
        add(interval, timestamp) -> timestamp
        add(timestamptz, interval) -> timestamptz
        add(interval, timestamptz) -> timestamptz
        add(time, interval) -> time
        add(interval, time) -> time
        add(interval, interval) -> interval
        subtract(date, int4) -> date
        subtract(date, date) -> int4
        subtract(date => timestamp, interval) -> timestamp
        subtract(timestamp, interval) -> timestamp
        subtract(timestamptz, interval) -> timestamptz
        subtract(timestamp, timestamp) -> interval
        subtract(timestamptz, timestamptz) -> interval
        subtract(time, interval) -> time
        subtract(time, time) -> interval
        subtract(interval, interval) -> interval
        multiply(interval, float8) -> interval
        multiply(float8, interval) -> interval
        divide(interval, float8) -> interval
        negate(interval) -> interval
        plus(interval) -> interval
        extract(text, date) -> numeric
        extract(text, time) -> numeric
        extract(text, timestamp) -> numeric
        extract(text, timestamptz) -> numeric
        extract(text, interval) -> numeric
        date_part(text, date) -> float8
        date_part(text, time) -> float8
        date_part(text, timestamp) -> float8
        date_part(text, timestamptz) -> float8
        date_part(text, interval) -> float8
        date_trunc(text, timestamp) -> timestamp
        date_trunc(text, timestamptz) -> timestamptz
        date_trunc(text, interval) -> interval
        date_bin(interval, timestamp, timestamp) -> timestamp
        date_bin(interval, timestamptz, timestamptz) -> timestamptz
        tumble_start(date => timestamp, interval) -> timestamp
        tumble_start(timestamp, interval) -> timestamp
        tumble_start(timestamptz, interval) -> timestamptz
        tumble_start(date => timestamp, interval, interval) -> timestamp
        tumble_start(timestamp, interval, interval) -> timestamp
        tumble_start(timestamptz, interval, interval) -> timestamptz
        to_char(timestamp, text) -> text
        to_char(timestamptz, text) -> text
        to_char(int4 => numeric, text) -> text
        to_char(int8 => numeric, text) -> text
        to_char(float8 => numeric, text) -> text
        to_char(numeric, text) -> text
        to_timestamp(float8) -> timestamptz
        make_date(int4, int4, int4) -> date
        make_time(int4, int4, float8) -> time
        make_timestamp(int4, int4, int4, int4, int4, float8) -> timestamp
        age(timestamp, timestamp) -> interval
        age(timestamptz, timestamptz) -> interval
        justify_hours(interval) -> interval
        justify_days(interval) -> interval
        justify_interval(interval) -> interval
        isfinite(date) -> bool
        isfinite(timestamp) -> bool
        isfinite(timestamptz) -> bool
        isfinite(interval) -> bool
        at_time_zone(timestamp, text) -> timestamptz
        at_time_zone(timestamptz, text) -> timestamp
        timezone(text, timestamp) -> timestamptz
        timezone(text, timestamptz) -> timestamp
        now() -> timestamptz stable
        current_timestamp() -> timestamptz stable
        transaction_timestamp() -> timestamptz stable
        statement_timestamp() -> timestamptz stable
        proctime() -> timestamptz stable
        localtimestamp() -> timestamp stable
        current_date() -> date stable
        localtime() -> time stable
        """

    static let jsonSignatures = """
        json_get(jsonb, text) -> jsonb
        json_get(jsonb, int4) -> jsonb
        json_get_text(jsonb, text) -> text
        json_get_text(jsonb, int4) -> text
        json_path(jsonb, text) -> jsonb
        json_path_text(jsonb, text) -> text
        json_has_key(jsonb, text) -> bool
        jsonb_typeof(jsonb) -> text
        jsonb_array_length(jsonb) -> int4
        json_typeof(jsonb) -> text
        json_array_length(jsonb) -> int4
        to_jsonb(any) -> jsonb
        json_build_object(variadic any) -> jsonb
        jsonb_build_object(variadic any) -> jsonb
        """

    static let systemSignatures = """
        pg_typeof(any) -> text
        """
}
