//! TOML files as written values with their lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::written::{Value, Written};

/// Reads a text as TOML.
///
/// # Errors
/// If it is none: why, in words that end a sentence.
pub fn parse(text: &str) -> Result<Written, String> {
    let lines = Lines::of(text);
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| lines.line(span.start));
        match error.message() {
            why if why.starts_with("cannot recurse") => {
                format!("line {line}: its brackets are nested too deep")
            }
            why if why.starts_with("recursion limit") => {
                format!("line {line}: a key has too many parts")
            }
            why => {
                let why = why.lines().collect::<Vec<_>>().join(", ");
                format!("it is not TOML: line {line}: {why}")
            }
        }
    })?;
    Ok(Written { value: lines.table(table.get_ref()), line: Some(1) })
}

/// Where the lines of a text end.
struct Lines {
    ends: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { ends: ends.map(|(at, _)| at).collect() }
    }

    /// The line, from 1, on which the byte at `place` stands.
    fn line(&self, place: usize) -> usize {
        self.ends.partition_point(|end| *end < place) + 1
    }

    /// A table with its keys in the order in which they stand in the file.
    fn table(&self, table: &DeTable<'_>) -> Value {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entries = entries.into_iter().map(|(key, value)| {
            let line = Some(self.line(key.span().start));
            (key.get_ref().to_string(), Written { value: self.value(value.get_ref()), line })
        });
        Value::Table(entries.collect())
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Value::Other(number.to_string()), Value::Whole),
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::Other(number.to_string()),
            },
            DeValue::Datetime(time) => Value::Other(time.to_string()),
            DeValue::Array(parts) => {
                Value::List(parts.iter().map(|part| self.element(part)).collect())
            }
            DeValue::Table(table) => self.table(table),
        }
    }

    /// A value of a list, which has no key.
    fn element(&self, part: &Spanned<DeValue<'_>>) -> Written {
        Written { value: self.value(part.get_ref()), line: Some(self.line(part.span().start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the value to which a path of keys and places leads.
    fn line(text: &str, path: &[&str]) -> usize {
        let mut at = parse(text).unwrap();
        for part in path {
            at = match (&at.value, part.parse::<usize>()) {
                (Value::List(parts), Ok(place)) => parts[place].clone(),
                _ => at.get(part).unwrap().clone(),
            };
        }
        at.line.unwrap()
    }

    #[test]
    fn every_value_has_its_line() {
        let text = "a = 1\ntext = \"\"\"\na = 2\n[x]\"\"\"\nlist = [ # ]\n    1,\n    2,\n]\n[t]\nb.c = 1\n\
                    \"quoted key\" = 1\n\n[[x]]\ny = 1\n[[x]]\ny = 1\n";
        for end in ["\n", "\r\n"] {
            let text = text.replace('\n', end);
            let lines: [(&[&str], usize); 9] = [
                (&["a"], 1),
                (&["text"], 2),
                (&["list"], 5),
                (&["list", "1"], 7),
                (&["t"], 9),
                (&["t", "b", "c"], 10),
                (&["t", "quoted key"], 11),
                (&["x", "0"], 13),
                (&["x", "1", "y"], 16),
            ];
            for (path, expected) in lines {
                assert_eq!(line(&text, path), expected, "{path:?}");
            }
        }
    }

    #[test]
    fn numbers_of_all_forms_are_read() {
        let found =
            parse("a = 0x10\nb = 1_000\nc = +1\nd = 1e400\ne = 99999999999999999999\nf = 0b11")
                .unwrap();
        let value = |key| found.get(key).unwrap().value.clone();
        assert_eq!(
            [value("a"), value("b"), value("c"), value("f")],
            [16, 1000, 1, 3].map(Value::Whole)
        );
        assert_eq!(value("d"), Value::Number(f64::INFINITY));
        assert_eq!(value("e"), Value::Other("99999999999999999999".to_owned()));
    }

    #[test]
    fn keys_keep_their_order() {
        let Value::Table(entries) = parse("b = 1\n[a]\n[c]\nb.x = 1").unwrap().value else {
            panic!()
        };
        assert_eq!(
            entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            ["b", "a", "c"]
        );
    }

    #[test]
    fn hostile_texts_are_refused_in_a_sentence() {
        let many = 100_000;
        for text in [format!("a = {}", "[".repeat(many)), format!("a = {}", "{a = ".repeat(many))] {
            assert_eq!(parse(&text).unwrap_err(), "line 1: its brackets are nested too deep");
        }
        for text in [
            format!("{}a = 1", "a.".repeat(many)),
            format!("[{}a]", "a.".repeat(many)),
            format!("[[{}a]]", "a.".repeat(many)),
            format!("{}a = 1", "\"a b\" . ".repeat(many)),
        ] {
            assert_eq!(parse(&text).unwrap_err(), "line 1: a key has too many parts");
        }
        assert_eq!(
            parse("x = 1\na = ").unwrap_err(),
            "it is not TOML: line 2: string values must be quoted, expected literal string"
        );
        assert_eq!(parse("a = 1\na = 2").unwrap_err(), "it is not TOML: line 2: duplicate key");
    }
}
