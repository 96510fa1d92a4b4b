//! The files of the pages, in the program. Each has the hash of its content in its path, so that browsers keep it for ever.

use std::sync::LazyLock;

use axum::{
    extract::Path,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use crate::ROOT;

/// A file of the pages.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($name:literal, $kind:expr) => {
        asset!($name, $kind, $name)
    };
    ($name:literal, $kind:expr, $file:literal) => {
        Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("../assets/", $file)) }
    };
}

/// The style sheets, scripts and pictures, in the order in which a page loads them.
static ASSETS: [Asset; 8] = [
    asset!("uplot.css", STYLE, "vendor/uplot.min.css"),
    asset!("console.css", STYLE),
    asset!("htmx.js", SCRIPT, "vendor/htmx.min.js"),
    asset!("idiomorph.js", SCRIPT, "vendor/idiomorph-ext.min.js"),
    asset!("uplot.js", SCRIPT, "vendor/uplot.min.js"),
    asset!("charts.js", SCRIPT),
    asset!("console.js", SCRIPT),
    asset!("icon.svg", "image/svg+xml"),
];

/// The address of each file.
static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ASSETS.iter().map(|asset| format!("{ROOT}/assets/{}/{}", hash(asset.bytes), asset.name)).collect()
});

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    BASE64_URL_SAFE_NO_PAD.encode(&digest[..12])
}

/// The addresses of the files of this kind.
fn of_kind(kind: &str) -> impl Iterator<Item = &'static str> {
    ASSETS
        .iter()
        .zip(PATHS.iter())
        .filter(move |(asset, _)| asset.kind == kind)
        .map(|(_, path)| path.as_str())
}

pub(crate) fn styles() -> impl Iterator<Item = &'static str> {
    of_kind(STYLE)
}

pub(crate) fn scripts() -> impl Iterator<Item = &'static str> {
    of_kind(SCRIPT)
}

pub(crate) fn icon() -> &'static str {
    of_kind("image/svg+xml").next().unwrap_or_default()
}

/// A file. Another hash is that of another version of the program, whose pages load again.
pub(crate) async fn serve(Path((wanted, name)): Path<(String, String)>) -> Response {
    let found = ASSETS.iter().find(|asset| asset.name == name && hash(asset.bytes) == wanted);
    let Some(asset) = found else { return StatusCode::NOT_FOUND.into_response() };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");

    #[test]
    fn the_files_of_others_are_unchanged_and_listed_with_their_licenses() {
        let table = fs::read_to_string(format!("{DIR}/README.md")).unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `vendor/")).collect();
        let mut files: Vec<_> =
            fs::read_dir(format!("{DIR}/vendor")).unwrap().map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end != "LICENSE"));
        assert_eq!(files.len(), rows.len());
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap();
            let row = rows.iter().find(|row| row.contains(&format!("`vendor/{name}`"))).unwrap();
            let digest: String = Sha256::digest(fs::read(&file).unwrap())
                .iter()
                .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            assert!(row.ends_with(&format!("| `{digest}` |")), "{name} has the hash {digest}");
            let license = row.split_once("](").unwrap().1.split_once(')').unwrap().0;
            assert!(fs::metadata(format!("{DIR}/{license}")).unwrap().len() > 100, "{license}");
        }
    }

    #[test]
    fn nothing_that_pages_load_names_another_origin() {
        for own in ["console.css", "console.js", "charts.js", "icon.svg"] {
            let text = fs::read_to_string(format!("{DIR}/{own}")).unwrap();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("//cdn"), "{own}");
        }
    }
}
