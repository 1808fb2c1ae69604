//! JSON in which no key stands twice: of two that are the same, most readers keep one without a word.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value, in whose objects every key stands once.
#[derive(Debug)]
pub(crate) struct KeysOnce(pub Value);

impl<'de> Deserialize<'de> for KeysOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

/// Takes whatever comes.
struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(KeysOnce(part)) = parts.next_element()? {
            list.push(part);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` is given twice: write it once")));
            }
            let KeysOnce(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_json_says_is_read_and_a_key_that_stands_twice_is_refused() {
        let read = |text: &str| serde_json::from_str::<KeysOnce>(text);
        let text = r#"{"a": [1, -2, 0.5, "x", null, true], "b": {"a": 1}}"#;
        assert_eq!(
            read(text).unwrap().0,
            json!({"a": [1, -2, 0.5, "x", null, true], "b": {"a": 1}})
        );
        let twice = read(r#"[{"a": {"b": 1, "b": 2}}]"#).unwrap_err().to_string();
        assert!(twice.starts_with("`b` is given twice: write it once"), "{twice}");
    }
}
