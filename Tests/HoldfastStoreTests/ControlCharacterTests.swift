import HoldfastStore
import Testing

/// Names and paths in errors may contain any characters. Printed messages contain no control characters.
@Suite struct ControlCharacterTests {
  @Test func anErrorsDescriptionHasNoControlCharacters() {
    let error = StoreError(
      .notFound, operation: "open the store", path: "/tmp/a\u{1B}[2Jb\nforged line\u{9B}\u{202E}", reason: "Name \u{7}.")
    #expect(
      error.description == "Could not open the store at /tmp/a\\u{1B}[2Jb\\u{A}forged line\\u{9B}\\u{202E}: Name \\u{7}. [notFound, 134080]"
    )
    #expect(error.path == "/tmp/a\u{1B}[2Jb\nforged line\u{9B}\u{202E}")
  }

  @Test(arguments: ["", "plain", "Zoë 🦊 日本語", "a\u{301}", "👩‍👩‍👧", "line\nand\ttab"]) func otherTextStays(text: String) {
    #expect(text.escapingControlCharacters(keepsLines: true) == text)
  }
}
