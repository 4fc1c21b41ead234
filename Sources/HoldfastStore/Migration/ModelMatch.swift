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
  }

  /// The index in the source of each item of the destination; nil if it is new.
  private(set) var sources: [Int?]
  /// The items of the destination whose identifier fits several items of the source, or is that of several items.
  private(set) var ambiguous: [Int] = []

  /// Compares two lists. Each item of the source is found at most once.
  ///
  /// Identifiers decide first: an identifier usually is the name in the first version, and stays the same when the item is renamed again. Then
  /// names do.
  init(_ source: [Name], _ destination: [Name]) {
    sources = Array(repeating: nil, count: destination.count)
    var free = Array(source.indices)
    func find(_ isFound: (Name) -> Bool) -> [Int] { free.filter { isFound(source[$0]) } }
    func take(_ place: Int, _ found: Int) {
      sources[place] = found
      free.removeAll { $0 == found }
    }
    for (place, item) in destination.enumerated() where item.renamingIdentifier != nil {
      if let found = find({ $0 == item }).first { take(place, found) }
    }
    for (place, item) in destination.enumerated() where sources[place] == nil {
      guard let identifier = item.renamingIdentifier else { continue }
      let same = find { $0.renamingIdentifier == identifier }, found = same.isEmpty ? find { $0.name == identifier } : same
      let rivals = destination.indices.filter { sources[$0] == nil && destination[$0].renamingIdentifier == identifier }
      if found.count > 1 || (rivals.count > 1 && !found.isEmpty) {
        ambiguous.append(place)
      } else if let found = found.first {
        take(place, found)
      }
    }
    let byName: [(Name, Name) -> Bool] = [{ $0.name == $1.name }, { $0.renamingIdentifier == $1.name }]
    for isSame in byName {
      for (place, item) in destination.enumerated() where sources[place] == nil && !ambiguous.contains(place) {
        if let found = find({ isSame($0, item) }).first { take(place, found) }
      }
    }
  }
}
