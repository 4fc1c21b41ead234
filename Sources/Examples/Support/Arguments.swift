/// The words of a command line, from which a command takes what it knows. What is left over is an error.
public struct Arguments {
  private var words: [String]

  /// Begins with the words that the program was given.
  public init(_ words: [String] = Array(CommandLine.arguments.dropFirst())) { self.words = words }

  /// Takes `--name value` or `--name=value`, wherever it stands; nil when it is not there.
  public mutating func option(_ name: String) throws -> String? {
    let places = words.indices.filter { words[$0] == name || words[$0].hasPrefix(name + "=") }
    guard let place = places.first else { return nil }
    if places.count > 1 { throw UsageError("\(name) is given \(places.count) times.") }
    let word = words.remove(at: place)
    if word != name { return String(word.dropFirst(name.count + 1)) }
    guard words.indices.contains(place), !words[place].hasPrefix("--") else { throw UsageError("A value is missing after \(name).") }
    return words.remove(at: place)
  }

  /// Takes `--name`, wherever it stands; false when it is not there.
  public mutating func flag(_ name: String) -> Bool {
    guard let place = words.firstIndex(of: name) else { return false }
    words.remove(at: place)
    return true
  }

  /// Takes the next word that is no option.
  ///
  /// - Parameter what: what it is, for who left it out.
  public mutating func word(_ what: String) throws -> String {
    guard let place = words.firstIndex(where: { !$0.hasPrefix("--") }) else { throw UsageError("\(what) is missing.") }
    return words.remove(at: place)
  }

  /// Takes the next word, which is a whole number.
  public mutating func number(_ what: String) throws -> Int {
    let text = try word(what)
    guard let number = Int(text) else { throw UsageError("\(what) is a whole number, not '\(text)'.") }
    return number
  }

  /// Makes sure that every word was taken.
  public func finish() throws {
    if let word = words.first { throw UsageError("'\(word)' is not known.") }
  }
}

/// A command line that says something that the program does not know.
public struct UsageError: Error, CustomStringConvertible {
  /// One sentence.
  public let description: String

  /// Says what is wrong.
  public init(_ sentence: String) { description = sentence }
}
