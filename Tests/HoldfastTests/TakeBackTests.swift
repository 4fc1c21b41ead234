import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Reverting changes of relationships separately for each end.
@Suite struct TakeBackTests {
  @Test(arguments: TestStore.withChild, [true, false]) func takingBackBothEndsOfALinkLeavesNone(_ store: TestStore, _ oneToMany: Bool)
    throws
  {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido")
    setup.dog("Rex")
    setup.person("Ann")
    try setup.save()
    let context = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    if oneToMany { fido.owner = ann } else { fido.friends.insert(rex) }
    for object in context.updatedObjects { try context.refresh(object, mergeChanges: false) }
    #expect(fido.owner == nil && ann.dogs.isEmpty && fido.friends.isEmpty && rex.friendOf.isEmpty)
    try context.save()
    let last = try place.context()
    #expect(try last.one(Dog.self) { $0.name == "Fido" }?.owner == nil)
    #expect(try last.one(Dog.self) { $0.name == "Fido" }?.friends.count == 0)
  }
}

/// Merging saved values into ordered relationships with pending changes.
@Suite struct MergeOrderTests {
  @Test(arguments: TestStore.withChild, [true, false]) func aMergingRefreshKeepsTheOrderOfAddedTargetsAfterARemoval(
    _ store: TestStore, _ oneToMany: Bool
  ) throws {
    let place = try store.makePlace(model: OrderAndRefreshTests.model, classes: [Album.self, Track.self, Genre.self])
    do {
      let setup = try place.context(), a = setup.insert(Album.self)
      a.name = "A"
      try setup.save()
    }
    let context = try place.context(), a = try #require(try context.one(Album.self) { $0.name == "A" })
    if oneToMany {
      let tracks = "xyz".map { letter in
        let t = context.insert(Track.self); t.title = String(letter); return t
      }
      for t in tracks { a.tracks.append(t) }
      a.tracks.remove(tracks[0])
      #expect(a.tracks.map(\.title) == ["y", "z"])
      try context.refresh(a, mergeChanges: true)
      #expect(a.tracks.map(\.title) == ["y", "z"])
    } else {
      let genres = "xyz".map { letter in
        let g = context.insert(Genre.self); g.name = String(letter); return g
      }
      for g in genres { a.genres.append(g) }
      a.genres.remove(genres[0])
      #expect(a.genres.map(\.name) == ["y", "z"])
      try context.refresh(a, mergeChanges: true)
      #expect(a.genres.map(\.name) == ["y", "z"])
    }
    try context.save()
    let last = try #require(try place.context().one(Album.self) { $0.name == "A" })
    #expect(oneToMany ? last.tracks.map(\.title) == ["y", "z"] : last.genres.map(\.name) == ["y", "z"])
  }
}
