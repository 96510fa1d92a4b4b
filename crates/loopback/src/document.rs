//! For tests: whether every call and every field that a client reads is in the API's document, which `ci/openapi` compares with the API.

use axum::http::Method;
use serde::{
    Deserialize, Deserializer, de,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor, value::StrDeserializer},
    forward_to_deserialize_any,
};
use serde_json::Value;

/// The paths of the fields that a type reads, such as `jobs[].progress.percent`.
///
/// # Panics
///
/// If the type reads no document of fields.
pub fn fields<T: for<'de> Deserialize<'de>>() -> Vec<String> {
    let mut found = Vec::new();
    let read = T::deserialize(Tracer { at: String::new(), found: &mut found });
    assert!(read.is_ok(), "cannot trace {}: {:?}", std::any::type_name::<T>(), read.err());
    found
}

/// A deserializer that has every field a type asks for, and notes it.
struct Tracer<'a> {
    at: String,
    found: &'a mut Vec<String>,
}

type Error = de::value::Error;

macro_rules! gives {
    ($($method:ident => $visit:ident($($value:expr)?);)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> { visitor.$visit($($value)?) })+
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    gives! {
        deserialize_any => visit_unit();
        deserialize_ignored_any => visit_unit();
        deserialize_unit => visit_unit();
        deserialize_bool => visit_bool(true);
        deserialize_u8 => visit_u8(1);
        deserialize_u16 => visit_u16(1);
        deserialize_u32 => visit_u32(1);
        deserialize_u64 => visit_u64(1);
        deserialize_i64 => visit_i64(1);
        deserialize_f64 => visit_f64(1.0);
        // A text that is a time, too.
        deserialize_str => visit_str("2026-11-28T00:00:00Z");
        deserialize_string => visit_str("2026-11-28T00:00:00Z");
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(One { at: format!("{}[]", self.at), found: self.found, is_given: false })
    }

    // Its keys are data. `serde_json::Map` and the like.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(de::value::MapDeserializer::new(std::iter::empty::<(&str, &str)>()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { tracer: self, left: fields.iter(), now: "" })
    }

    forward_to_deserialize_any! { i8 i16 i32 i128 u128 f32 char bytes byte_buf unit_struct tuple tuple_struct enum identifier }
}

struct One<'a> {
    at: String,
    found: &'a mut Vec<String>,
    is_given: bool,
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if std::mem::replace(&mut self.is_given, true) {
            return Ok(None);
        }
        seed.deserialize(Tracer { at: self.at.clone(), found: self.found }).map(Some)
    }
}

struct Fields<'a> {
    tracer: Tracer<'a>,
    left: std::slice::Iter<'static, &'static str>,
    now: &'static str,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.left.next() else { return Ok(None) };
        self.now = name;
        let key: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let dot = if self.tracer.at.is_empty() { "" } else { "." };
        let at = format!("{}{dot}{}", self.tracer.at, self.now);
        self.tracer.found.push(at.clone());
        seed.deserialize(Tracer { at, found: self.tracer.found })
    }
}

/// The API's document.
struct Document(Value);

impl Document {
    fn read() -> Self {
        let text = include_str!("../../../openapi/openapi.json");
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => self.0.pointer(&name[1..]).map_or(schema, |target| self.resolved(target)),
            None => schema,
        }
    }

    /// What a step of a path leads to: a property, or the items of a list.
    fn step(&self, schema: &Value, name: &str) -> Option<Value> {
        let schema = self.resolved(schema);
        let direct = if name == "[]" { schema.get("items") } else { schema["properties"].get(name) };
        let parts = ["allOf", "oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        direct.cloned().or_else(|| parts.map(|part| self.step(part, name)).find_map(|found| found))
    }

    fn has(&self, schema: &Value, path: &str) -> bool {
        let steps = path.replace("[]", ".[]");
        let mut steps = steps.split('.').filter(|step| !step.is_empty());
        steps.try_fold(schema.clone(), |schema, step| self.step(&schema, step)).is_some()
    }

    fn answer(&self, method: &str, path: &str) -> Option<Value> {
        let responses = self.0["paths"].get(path)?.get(method)?.get("responses")?.as_object()?;
        let success = responses.iter().find(|(status, _)| status.starts_with('2'))?.1;
        Some(success["content"]["application/json"]["schema"].clone())
    }
}

/// The fields of an object that the document describes by this name.
pub fn properties(schema: &str) -> Vec<String> {
    let document = Document::read();
    let fields = document.0["components"]["schemas"][schema]["properties"].as_object().into_iter().flatten();
    fields.map(|(name, _)| name.clone()).collect()
}

/// A call with the fields that a client reads in its answer.
pub type Read = (Method, &'static str, Vec<String>);

/// What a client reads and the document does not have.
pub fn lacking(calls: Vec<Read>) -> Vec<String> {
    let document = Document::read();
    let mut missing = Vec::new();
    for (method, path, fields) in calls {
        let method = method.as_str().to_lowercase();
        let Some(schema) = document.answer(&method, path) else {
            missing.push(format!("{method} {path}"));
            continue;
        };
        let lacks = fields.iter().filter(|field| !document.has(&schema, field));
        missing.extend(lacks.map(|field| format!("{method} {path}: {field}")));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_type_are_found_through_lists_and_options() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Inner {
            time: String,
            rest: std::marker::PhantomData<()>,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Outer {
            list: Option<Vec<Inner>>,
            any: Value,
        }
        assert_eq!(fields::<Outer>(), ["list", "list[].time", "list[].rest", "any"]);
        let document = Document::read();
        let jobs = document.answer("get", "/jobs").unwrap();
        assert!(document.has(&jobs, "jobs[].progress.percent") && document.has(&jobs, "jobs[].owner"));
        assert!(!document.has(&jobs, "jobs[].progress.colour") && !document.has(&jobs, "jobs.owner"));
    }
}
