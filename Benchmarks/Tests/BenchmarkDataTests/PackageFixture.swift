import BenchmarkData

/// A small hand-written index with everything that real indexes contain, and some invalid entries.
enum PackageFixture {
  static let text = """
    Package: editor
    Version: 1:2.0-1
    Architecture: amd64
    Installed-Size: 420
    Maintainer: Ånna Editor <anna@example.org>
    Source: editor-src (2.0)
    Multi-Arch: foreign
    Depends: libedit2 (>= 2.0~), libedit2 (<< 3),
     runtime:any | runtime-mini [amd64], mail-agent
    Pre-Depends: libbase
    Recommends: spell <!nodoc>
    Suggests: editor, no-such-package
    Description: small editor
     It edits.
     .
      Two blanks stay one.
    Homepage: https://example.org/editor
    Section: text
    Priority: optional
    Size: 12345
    Unknown-Field: passed over
     with its continuation

    Package: libedit2
    Version: 2.0
    Architecture: amd64
    Maintainer: Ånna Editor <anna@example.org>
    Description: editing library
    Installed-Size: 150
    Section: libs
    Breaks: editor (<< 1.0)
    Replaces: editor (< 1.0), runtime (> 0.1)

    Package: libedit2
    Version: 2.1
    Architecture: amd64
    Maintainer: Ånna Editor <anna@example.org>
    Description: editing library
    Installed-Size: 151
    Section: libs
    # a comment

    Package: libedit2
    Version: 2.0
    Architecture: amd64
    Description: an exact repetition, left out


    PACKAGE: postman
    version: 3
    architecture: all
    maintainer: Nobody
    installed-size: not a number
    provides: mail-agent (= 3)
    conflicts: mail-agent
    description:
     nothing in the first line

    Version: 4
    Description: a stanza without a name

    Package: postwoman
    Version: 3
    Version: 4
    Architecture: all
    Provides: mail-agent

    Package: runtime
    this is no field
    Version: 0.9
    Section: text
    Depends: , ,| (>= 2), spell (
    Description: cut o
    """

  static let index = parse(text)

  /// Parses a text in chunks of the given number of bytes.
  static func parse(_ text: String, pieces: Int = .max) -> PackageIndex { parse(Array(text.utf8), pieces: pieces) }

  static func parse(_ bytes: [UInt8], pieces: Int = .max) -> PackageIndex {
    var parser = PackageIndexParser()
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = rest.prefix(pieces)
      piece.withUnsafeBytes { parser.consume($0) }
      rest = rest.dropFirst(piece.count)
    }
    return parser.finish()
  }
}
