# Flattens JSON: prints a line "a.b.0<TAB>value" for every string, number and literal.
# Exits 1 if the text is not JSON.

{ text = text $0 "\n" }

END {
  position = 1
  value("")
  skip()
  if (position <= length(text)) bad()
}

function bad() {
  print "json: syntax error at character " position > "/dev/stderr"
  exit 1
}

function skip() {
  while (index(" \t\r\n", at()) && at() != "") position++
}

function at() { return substr(text, position, 1) }

function expect(character) {
  skip()
  if (at() != character) bad()
  position++
}

function value(path, first) {
  skip()
  first = at()
  if (first == "{") object(path)
  else if (first == "[") array(path)
  else if (first == "\"") print path "\t" string()
  else word(path)
}

function below(path, key) { return path == "" ? key : path "." key }

function object(path, key) {
  position++
  skip()
  if (at() == "}") { position++; return }
  while (1) {
    skip()
    if (at() != "\"") bad()
    key = string()
    expect(":")
    value(below(path, key))
    skip()
    if (at() != ",") break
    position++
  }
  expect("}")
}

function array(path, i) {
  position++
  skip()
  if (at() == "]") { position++; return }
  for (i = 0; ; i++) {
    value(below(path, i))
    skip()
    if (at() != ",") break
    position++
  }
  expect("]")
}

# Escapes other than those of quotes, slashes and blanks are kept unchanged.
function string(result, c) {
  position++
  while ((c = at()) != "\"") {
    if (c == "" || c == "\n") bad()
    if (c == "\\") {
      position++
      c = at()
      if (c == "n" || c == "t" || c == "r") c = " "
      else if (c !~ /["\/\\]/) c = "\\" c
    }
    result = result c
    position++
  }
  position++
  return result
}

function word(path, start) {
  start = position
  while (at() ~ /[-+.0-9A-Za-z]/) position++
  if (position == start) bad()
  print path "\t" substr(text, start, position - start)
}
