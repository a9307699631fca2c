# Writes each fenced block of a page into a file of its own: LINE.LANGUAGE in `folder`, by its first line.
/^ *(```|~~~)/ {
  if (file == "") {
    language = $0
    sub(/^ *[`~]+ */, "", language)
    file = folder "/" FNR + 1 "." language
    printf "" > file
  } else {
    close(file)
    file = ""
  }
  next
}
file != "" { print > file }
END {
  if (file != "") {
    print FILENAME ": the last block has no end" > "/dev/stderr"
    exit 1
  }
}
