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

  private struct Failure: Error, CustomStringConvertible { let description = "no such table: a\u{1B}[2J" }

  /// A cause can quote names in a damaged file.
  @Test func theCauseOfAnErrorHasNoControlCharacters() {
    let errors: [any Error] = [
      StoreError(.general, operation: "fetch rows", reason: "It failed.", cause: Failure()),
      MigrationError(.general, reason: "It failed.", cause: Failure()),
    ]
    for error in errors { #expect("\(error)".hasSuffix("] Cause: no such table: a\\u{1B}[2J"), "\(error)") }
  }

  /// A client of a server can choose the property by which the result is sorted.
  @Test func theNameOfAPropertyInAQueryErrorForgesNoLineOfALog() {
    let error = QueryError(entity: "Dog", part: "a\n\u{1B}[2J", reason: "Dog.a\n\u{1B}[2J doesn't exist.")
    #expect(error.description == "The query on Dog is invalid at a\\u{A}\\u{1B}[2J: Dog.a\\u{A}\\u{1B}[2J doesn't exist.")
    #expect(error.errorDescription == error.description)
  }

  @Test(arguments: ["", "plain", "Zoë 🦊 日本語", "a\u{301}", "👩‍👩‍👧", "line\nand\ttab"]) func otherTextStays(text: String) {
    #expect(text.escapingControlCharacters(keepsLines: true) == text)
  }
}
