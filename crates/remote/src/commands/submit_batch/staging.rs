//! How the entries of a batch go over the wire: their columns, then the files of each wave.

use std::collections::{BTreeSet, HashMap};

use slurm::RemotePath;

use super::submission::Submission;
use crate::stdin_writer::{ABSENT, StdinWriter};

/// Fewer entries go in one wave.
const FEW: usize = 8;

/// Entries that are staged together. The first wave is smaller, so that its submission begins early; the second is staged
/// meanwhile.
pub(super) fn waves(entries: &[Submission]) -> impl Iterator<Item = &[Submission]> {
    let first = if entries.len() < FEW { entries.len() } else { entries.len().div_ceil(4) };
    let (first, rest) = entries.split_at(first);
    [first, rest].into_iter().filter(|wave| !wave.is_empty())
}

/// The directories of a batch, each once.
pub(super) struct Dirs<'a> {
    /// The directories of every entry.
    shared: Vec<&'a RemotePath>,
    /// The others.
    own: Vec<&'a RemotePath>,
    /// For each entry, the places of its own directories in that list.
    places: Vec<String>,
}

impl<'a> Dirs<'a> {
    pub(super) fn of(entries: &'a [Submission]) -> Self {
        let of_entries: Vec<BTreeSet<&RemotePath>> =
            entries.iter().map(|entry| entry.make_dirs.iter().chain([&entry.state_dir]).collect()).collect();
        let mut shared = of_entries.first().cloned().unwrap_or_default();
        for dirs in &of_entries {
            shared.retain(|dir| dirs.contains(dir));
        }
        let mut own = Vec::new();
        let mut known = HashMap::new();
        let mut place = |dir: &'a RemotePath| {
            let place = *known.entry(dir).or_insert(own.len());
            if place == own.len() {
                own.push(dir);
            }
            place.to_string()
        };
        let places = of_entries
            .iter()
            .map(|dirs| match dirs.difference(&shared).map(|dir| place(dir)).collect::<Vec<_>>() {
                places if places.is_empty() => ABSENT.to_owned(),
                places => places.join(" "),
            })
            .collect();
        Self { shared: shared.into_iter().collect(), own, places }
    }
}

/// Everything but the bytes of the files, column by column, so that bash reads a column of all entries at once.
pub(super) fn columns(entries: &[Submission], dirs: &Dirs<'_>, waves: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let files =
        || numbered(entries).flat_map(|(no, entry)| entry.files.iter().map(move |file| (no, entry, file)));
    let inputs = || {
        numbered(entries).flat_map(|(no, entry)| {
            entry.inputs.iter().enumerate().map(move |(place, path)| (no, place, path))
        })
    };
    let mut stdin = StdinWriter::default();
    stdin.line("shared_dirs", &dirs.shared).line("dirs", &dirs.own);
    stdin.line("wave_entries", waves.iter().map(|(entries, _)| entries));
    stdin.line("wave_bytes", waves.iter().map(|(_, archive)| archive.len()));
    stdin.line("name", entries.iter().map(|entry| &entry.key.name));
    stdin.line("state", entries.iter().map(|entry| &entry.state_dir));
    stdin.line("script", entries.iter().map(|entry| &entry.script_path));
    stdin.line("send", entries.iter().map(|entry| entry.send));
    stdin.line("cleared", entries.iter().map(|entry| entry.cleared));
    stdin.line("dirs_of", &dirs.places);
    stdin.line("base", entries.iter().map(|entry| &entry.base_dir));
    stdin.line("results", entries.iter().map(|entry| &entry.results_dir));
    stdin.line("file_entry", files().map(|(no, ..)| no));
    stdin.line(
        "file_look",
        files().map(|(_, _, file)| format!("{}-{:o}", file.bytes.len(), file.mode & 0o777)),
    );
    stdin.line("file_in_place", files().map(|(_, entry, file)| u8::from(entry.owns(file))));
    stdin.line("file_path", files().map(|(_, _, file)| &file.path));
    stdin.line("need_entry", inputs().map(|(no, ..)| no));
    stdin.line("need_place", inputs().map(|(_, place, _)| place));
    stdin.line("need", inputs().map(|(_, _, path)| path));
    stdin.into_bytes()
}

fn numbered(entries: &[Submission]) -> impl Iterator<Item = (usize, &Submission)> {
    entries.iter().enumerate()
}

/// The files of entries as a tar archive to extract at `/`, with their modes. A file for a temporary directory has `%` in its
/// path, which no [`RemotePath`] contains; the program replaces it.
pub(super) fn archive(entries: &[Submission]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (entry, file) in entries.iter().flat_map(|entry| entry.files.iter().map(move |file| (entry, file))) {
        let (parent, name) = file.path.as_str().rsplit_once('/').unwrap_or_default();
        let parent = parent.trim_start_matches('/');
        let name = if entry.owns(file) { format!("{parent}/{name}") } else { format!("{parent}/%/{name}") };
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode & 0o777);
        // Writing to memory does not fail, and a RemotePath has no `..`, which tar would refuse. The program notices a missing
        // file.
        let _ = archive.append_data(&mut header, name, file.bytes.as_slice());
    }
    archive.into_inner().unwrap_or_default()
}
