import HoldfastStore

extension GraphDifference: CustomStringConvertible {
  /// One line for each entity, and one for each object that differs. Contains no values.
  public var description: String { text { _ in nil } }

  /// The text of ``description``, with values.
  ///
  /// - Parameter value: Returns the text of a value; nil to leave out the values of the property.
  public func text(value: (StoreValue) -> String?) -> String {
    var lines = entities.map(\.description) + objects.map { $0.text(value) }
    let rest = differenceCount - objects.count
    if rest > 0 { lines.append("And \(rest) more \(rest == 1 ? "difference" : "differences").") }
    return lines.joined(separator: "\n")
  }
}

extension GraphDifference.Entity: CustomStringConvertible {
  /// The name and the numbers, in one line.
  public var description: String {
    var parts: [String] = []
    if pairCount > 0 || differenceCount == 0 {
      let objects = "\(pairCount) \(pairCount == 1 ? "object" : "objects") in both stores"
      parts.append(changedCount == 0 ? objects : "\(objects), \(changedCount) changed")
    }
    if onlyInFirstCount > 0 { parts.append("\(onlyInFirstCount) only in the first store") }
    if onlyInSecondCount > 0 { parts.append("\(onlyInSecondCount) only in the second store") }
    return "\(name): \(parts.joined(separator: "; "))"
  }
}

extension GraphDifference.Object: CustomStringConvertible {
  /// What differs, the entity and key, and the names of the properties, in one line.
  public var description: String { text { _ in nil } }

  fileprivate func text(_ value: (StoreValue) -> String?) -> String {
    switch kind {
    case .onlyInFirst: return "Only in the first store: \(Self.name(first))"
    case .onlyInSecond: return "Only in the second store: \(Self.name(second))"
    case .changed:
      let names = [Self.name(first), Self.name(second)]
      let object = names[0] == names[1] ? names[0] : "\(names[0]), in the second store \(names[1])"
      return "Changed: \(object): \(properties.map { $0.text(value) }.joined(separator: ", "))"
    }
  }

  /// The entity and the key of an ID: "Dog/p5".
  private static func name(_ id: ManagedObjectID?) -> String {
    (id?.uriRepresentation ?? "").split(separator: "/").suffix(2).joined(separator: "/")
  }
}

extension GraphDifference.Property {
  fileprivate func text(_ value: (StoreValue) -> String?) -> String {
    guard let first = first.flatMap(value), let second = second.flatMap(value) else { return name }
    return "\(name) (\(first) → \(second))"
  }
}
