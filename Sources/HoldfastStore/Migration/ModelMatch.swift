/// Finds the same thing in two versions of a model, by names and renaming identifiers.
struct ModelMatch {
  /// What is compared.
  struct Name: Hashable {
    var name: String
    var renamingIdentifier: String?

    init(_ name: String, _ renamingIdentifier: String?) {
      self.name = name
      // Xcode writes the name itself for some properties.
      self.renamingIdentifier = renamingIdentifier == name ? nil : renamingIdentifier
    }

    fileprivate var identifiers: Set<String> { renamingIdentifier.map { [name, $0] } ?? [name] }
  }

  /// The index in the source of each item of the destination; nil if it is new.
  private(set) var sources: [Int?]
  /// The items of the destination whose identifier fits several items of the source.
  private(set) var ambiguous: [Int] = []

  /// Compares two lists. Each item of the source is found at most once.
  ///
  /// An item with the same name and identifier in both versions is the same one. Then identifiers decide, and finally names: an identifier
  /// usually is the name in the first version, and stays the same when the item is renamed again.
  init(_ source: [Name], _ destination: [Name]) {
    sources = Array(repeating: nil, count: destination.count)
    var free = Set(source.indices)
    func take(_ place: Int, _ found: Int) {
      sources[place] = found
      free.remove(found)
    }
    for (place, item) in destination.enumerated() { if let found = free.first(where: { source[$0] == item }) { take(place, found) } }
    for (place, item) in destination.enumerated() where sources[place] == nil {
      guard let identifier = item.renamingIdentifier else { continue }
      let found = free.filter { source[$0].identifiers.contains(identifier) }
      if found.count > 1 { ambiguous.append(place) } else if let found = found.first { take(place, found) }
    }
    for (place, item) in destination.enumerated() where sources[place] == nil && !ambiguous.contains(place) {
      if let found = free.first(where: { source[$0].name == item.name })
        ?? free.first(where: { source[$0].renamingIdentifier == item.name })
      {
        take(place, found)
      }
    }
  }
}
