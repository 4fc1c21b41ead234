/// The words of a command line. A command takes the ones that it knows; ``finish()`` refuses the rest.
public struct Arguments {
  private var words: [String]

  /// Creates the list, by default with the arguments of the process.
  public init(_ words: [String] = Array(CommandLine.arguments.dropFirst())) { self.words = words }

  /// Takes `--name value` or `--name=value` from any position; returns nil if it's missing.
  public mutating func option(_ name: String) throws -> String? {
    let places = words.indices.filter { words[$0] == name || words[$0].hasPrefix(name + "=") }
    guard let place = places.first else { return nil }
    if places.count > 1 { throw UsageError("\(name) was given \(places.count) times. Give it once.") }
    let word = words.remove(at: place)
    if word != name { return String(word.dropFirst(name.count + 1)) }
    guard words.indices.contains(place), !words[place].hasPrefix("--") else { throw UsageError("The value after \(name) is missing.") }
    return words.remove(at: place)
  }

  /// Takes `--name` from any position; returns false if it's missing.
  public mutating func flag(_ name: String) -> Bool {
    guard let place = words.firstIndex(of: name) else { return false }
    words.remove(at: place)
    return true
  }

  /// Takes the next word that isn't an option.
  ///
  /// - Parameter what: the name of the argument, for the error message.
  public mutating func word(_ what: String) throws -> String {
    guard let place = words.firstIndex(where: { !$0.hasPrefix("--") }) else { throw UsageError("\(what) is missing.") }
    return words.remove(at: place)
  }

  /// Takes the next word as a whole number.
  public mutating func number(_ what: String) throws -> Int {
    let text = try word(what)
    guard let number = Int(text) else { throw UsageError("\(what) takes a whole number, not '\(text)'.") }
    return number
  }

  /// Checks that all words were taken.
  ///
  /// - Throws: ``UsageError`` for the first word that wasn't.
  public func finish() throws {
    if let word = words.first { throw UsageError("Unknown argument '\(word)'.") }
  }
}

/// A command line that the program can't interpret.
public struct UsageError: Error, CustomStringConvertible {
  /// The message, for the user.
  public let description: String

  /// Creates an error with a message.
  public init(_ sentence: String) { description = sentence }
}
