# shellcheck shell=bash
# Puts one entry into enroot's credentials, in the place of all entries of the same machine, because enroot uses the first
# one. Every other byte of the file stays. The password is in builtins, pipes and the file alone, never in an argument or a
# variable of the environment.
#
# stdin: a line "machine, login, password".

IFS=$'\t' read -r machine login password || give_up 'the credentials did not arrive whole'
if [ -z "${HOME:-}" ]; then give_up 'HOME is not set on the login host'; fi
umask 077
dir=${credentials%/*}
if ! mkdir -p -- "$dir" 2>"$tmp/err" </dev/null || ! chmod 700 -- "$dir" 2>"$tmp/err"; then
  give_up "$(head -c 2000 "$tmp/err")"
fi
# A link stays one: people keep their settings elsewhere.
if [ -L "$credentials" ]; then
  credentials=$(readlink -f -- "$credentials" </dev/null)
  dir=${credentials%/*}
fi
# A pipe would block the copy, and a device has no end.
if [ -e "$credentials" ] && [ ! -f "$credentials" ]; then give_up "$credentials is not a file; remove it by hand"; fi
# Of several who come at the same time, each sees what the one before has written.
lock=$dir/.credentials.lock
for ((tries = 0; ; tries++)); do
  if mkdir -- "$lock" 2>"$tmp/err" </dev/null; then break; fi
  if [ ! -d "$lock" ]; then give_up "$(head -c 2000 "$tmp/err")"; fi
  # Left behind by one that was killed.
  if [ -n "$(find "$lock" -maxdepth 0 -mmin +2 2>/dev/null)" ]; then rmdir -- "$lock" 2>/dev/null; fi
  if ((tries >= 50)); then give_up 'somebody else is writing the credentials; try again'; fi
  sleep 0.2
done
new=$dir/.credentials.new.${tmp##*.}
trap 'rm -f -- "$new"; rmdir -- "$lock" 2>/dev/null; rm -rf -- "$tmp"' EXIT
size=$(stat -L -c %s -- "$credentials" 2>/dev/null </dev/null)
if ((${size:-0} > 100000)); then give_up "$credentials is too large; mend it by hand"; fi
if [ ! -e "$credentials" ]; then : >"$new"; elif ! cp -- "$credentials" "$new" 2>"$tmp/err"; then
  give_up "$(head -c 2000 "$tmp/err")"
fi
if [ -n "$(tr -d '\n\t\r\40-\176\200-\377' <"$new" | head -c 1 | base64 -w0)" ]; then
  give_up "$credentials is no text; mend it by hand"
fi

# The file with a marker behind it, which shows whether the last line ends in a newline.
{
  printf '%s\n' "$machine"
  printf 'machine %s login %s password %s\n' "$machine" "$login" "$password"
  cat -- "$new"
  printf '.'
} | awk '
  NR == 1 { machine = $0; next }
  NR == 2 { entry = $0 "\n"; next }
  { text = text (NR > 3 ? "\n" : "") $0 }
  # Where the entry that begins at a place ends: before the next word that begins one, with its own line.
  function next_word(from,   rest) {
    rest = substr(text, from)
    if (!match(rest, /[^ \t\r\n]+/)) return 0
    start = from + RSTART - 1
    word = substr(rest, RSTART, RLENGTH)
    return start + RLENGTH
  }
  # The same for a value, which curl lets stand in quotes with blanks in it.
  function next_value(from,   after, rest) {
    after = next_word(from)
    rest = substr(text, start)
    if (!after || !match(rest, /^"([^"\\]|\\.)*"/)) return after
    word = substr(rest, 1, RLENGTH)
    return start + RLENGTH
  }
  END {
    sub(/\.$/, "", text)
    out = ""; kept = 1; at = 1; done = 0
    while (1) {
      after = next_word(at)
      if (!after) break
      if (substr(word, 1, 1) == "#") { at = skip_line(start); continue }
      if (word != "machine") { at = after; continue }
      begin = start
      after = next_word(after)
      if (!after) break
      same = (word == machine)
      at = after; stop = after
      while ((after = next_word(at)) && (word == "login" || word == "password" || word == "account")) {
        after = next_value(after)
        if (!after) break
        at = after; stop = after
      }
      if (same) {
        # Whatever blanks end its line belong to it.
        rest = substr(text, stop)
        if (match(rest, /^[ \t\r]*\n/)) stop += RLENGTH
        out = out substr(text, kept, begin - kept)
        if (!done) { out = out entry; done = 1 }
        kept = stop
      }
      at = stop
    }
    out = out substr(text, kept)
    if (!done) {
      if (out != "" && substr(out, length(out)) != "\n") out = out "\n"
      out = out entry
    }
    printf "%s", out
  }
  function skip_line(from,   rest) {
    rest = substr(text, from)
    return match(rest, /\n/) ? from + RSTART : length(text) + 1
  }' >"$new.merged" 2>"$tmp/err"
code=$?
trap 'rm -f -- "$new" "$new.merged"; rmdir -- "$lock" 2>/dev/null; rm -rf -- "$tmp"' EXIT
# A full disk may show only in the size; the new file holds the entry, whatever else it does.
if [ "$code" != 0 ] || ! printf 'machine %s login %s password %s\n' "$machine" "$login" "$password" \
  | grep -q -F -f - -- "$new.merged" 2>/dev/null; then
  give_up "the credentials could not be written: $(head -c 1000 "$tmp/err")"
fi
if ! chmod 600 -- "$new.merged" 2>"$tmp/err" || ! mv -f -- "$new.merged" "$credentials" 2>"$tmp/err"; then
  give_up "$(head -c 2000 "$tmp/err")"
fi
say INSTALLED
finish
