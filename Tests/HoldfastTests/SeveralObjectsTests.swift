import TestSupport
import Testing

@testable import Holdfast

/// Changes of several objects of a relationship at once, on every store.
@Suite struct SeveralObjectsTests {
  private struct Scene {
    let place: TestStore.Place
    let context: ManagedObjectContext
    let album: Album

    init(_ store: TestStore, _ letters: String = "abcde") throws {
      place = try store.makePlace(model: OrderAndRefreshTests.model, classes: [Album.self, Track.self, Genre.self])
      let first = try place.context(), album = first.insert(Album.self)
      album.name = "A"
      for letter in letters { album.tracks.append(Scene.track(String(letter), first)) }
      try first.save()
      context = try place.context()
      self.album = try #require(try context.one(Album.self) { $0.name == "A" })
    }

    static func track(_ title: String, _ context: ManagedObjectContext) -> Track {
      let track = context.insert(Track.self)
      track.title = title
      return track
    }

    /// New tracks, named by letters.
    func new(_ letters: String) -> [Track] { letters.map { Scene.track(String($0), context) } }

    /// Tracks of the album, by letters.
    func known(_ letters: String) throws -> [Track] {
      try letters.map { letter in try #require(try context.one(Track.self) { $0.title == String(letter) }) }
    }

    var titles: String { album.tracks.map(\.title).joined() }

    /// Checks that the album has these tracks, that both ends agree, and that a save doesn't change that.
    func becomes(_ letters: String) throws {
      #expect(titles == letters && album.tracks.count == letters.count)
      for track in try context.fetch(FetchRequest<Track>()) {
        #expect((track.album === album) == letters.contains(track.title), "\(track.title)")
      }
      try context.save()
      #expect(titles == letters)
      let other = try place.context(), same = try #require(try other.one(Album.self) { $0.name == "A" })
      #expect(same.tracks.map(\.title).joined() == letters)
      for track in try other.fetch(FetchRequest<Track>()) { #expect((track.album === same) == letters.contains(track.title)) }
    }
  }

  @Test(arguments: TestStore.withChild) func severalAreInsertedBeforeOne(_ store: TestStore) throws {
    let scene = try Scene(store), tracks = scene.album.tracks
    tracks.insert(contentsOf: scene.new("xy") + (try scene.known("a")) + scene.new("z"), at: 2)
    try scene.becomes("abxyzcde")
    tracks.insert(contentsOf: scene.new("pq"), at: 8)
    tracks.insert(contentsOf: scene.new("r"), at: 0)
    try scene.becomes("rabxyzcdepq")
    tracks.insert(contentsOf: try scene.known("ab"), at: 9)
    tracks.insert(contentsOf: [], at: 11)
    #expect(!scene.context.hasChanges)
  }

  @Test(arguments: TestStore.withChild) func severalAreInsertedAtPositionsOfTheirOwn(_ store: TestStore) throws {
    let scene = try Scene(store), tracks = scene.album.tracks
    tracks.insert(contentsOf: scene.new("pqr"), atOffsets: [7, 0, 3])
    try scene.becomes("pabqcder")
    // An existing track keeps its position, and its offset isn't used by another one.
    tracks.insert(contentsOf: scene.new("x") + (try scene.known("p")) + scene.new("y"), atOffsets: [1, 2, 10])
    try scene.becomes("pxabqcdery")
  }

  @Test(arguments: TestStore.withChild) func severalAreRemovedByTheirPositions(_ store: TestStore) throws {
    let scene = try Scene(store)
    scene.album.tracks.remove(atOffsets: [4, 0, 2, 4])
    try scene.becomes("bd")
    scene.album.tracks.remove(atOffsets: [])
    #expect(!scene.context.hasChanges)
    scene.album.tracks.remove(atOffsets: 0..<2)
    try scene.becomes("")
  }

  @Test(arguments: TestStore.withChild) func severalAreReplacedAtTheirPositions(_ store: TestStore) throws {
    let scene = try Scene(store), tracks = scene.album.tracks
    tracks.replace(atOffsets: [3, 1], with: scene.new("xy"))
    try scene.becomes("axcye")
    // One track replaces another, which is removed.
    tracks.replace(atOffsets: [0, 1], with: scene.new("p") + (try scene.known("a")))
    try scene.becomes("pacye")
    // They exchange their positions.
    tracks.replace(atOffsets: [0, 2, 4], with: try scene.known("epc"))
    try scene.becomes("eapyc")
    // A track at another position stays there, and so does the one that it would have replaced. Duplicates are used once.
    let z = scene.new("z")
    tracks.replace(atOffsets: [0, 1, 2], with: try scene.known("y") + z + z)
    try scene.becomes("ezpyc")
    tracks.replace(atOffsets: 0..<5, with: try scene.known("ezpyc"))
    #expect(!scene.context.hasChanges)
  }

  @Test(arguments: TestStore.withChild) func severalAreTakenOutAsASet(_ store: TestStore) throws {
    let scene = try Scene(store), tracks = scene.album.tracks
    tracks.subtract(try scene.known("ec") + scene.new("x"))
    try scene.becomes("abd")
    tracks.formIntersection(try scene.known("dbx"))
    try scene.becomes("bd")
    tracks.formIntersection(try scene.known("bdx"))
    tracks.subtract(try scene.known("xa"))
    #expect(!scene.context.hasChanges)
    tracks.formIntersection([])
    try scene.becomes("")
  }

  /// The objects of a slice are removed from its relationship while they are moved.
  @Test(arguments: TestStore.withChild) func partsOfARelationshipMoveToAnother(_ store: TestStore) throws {
    let scene = try Scene(store), tracks = scene.album.tracks
    let other = scene.context.insert(Album.self)
    other.name = "B"
    other.tracks.append(contentsOf: tracks.prefix(2))
    #expect(scene.titles == "cde" && other.tracks.map(\.title).joined() == "ab")
    other.tracks.insert(contentsOf: tracks.suffix(2), at: 1)
    #expect(scene.titles == "c" && other.tracks.map(\.title).joined() == "adeb")
    tracks.replaceAll(with: other.tracks[1...2])
    #expect(other.tracks.map(\.title).joined() == "ab")
    other.tracks.subtract(other.tracks.prefix(1))
    #expect(other.tracks.map(\.title) == ["b"])
    try scene.becomes("de")
  }

  @Test(arguments: TestStore.withChild) func deletedObjectsDoNotCountAndARollbackGivesAllBack(_ store: TestStore) throws {
    let scene = try Scene(store, "abcdefgh"), tracks = scene.album.tracks
    for track in try scene.known("bf") { scene.context.delete(track) }
    tracks.insert(contentsOf: scene.new("xy"), at: 2)
    #expect(scene.titles == "acxydegh")
    tracks.remove(atOffsets: [0, 4])
    tracks.replace(atOffsets: [1, 5], with: scene.new("pq"))
    #expect(scene.titles == "cpyegq")
    tracks.insert(contentsOf: scene.new("rs"), atOffsets: [0, 7])
    tracks.formIntersection(Array(tracks.dropLast(2)))
    #expect(scene.titles == "rcpyeg")
    scene.context.rollback()
    #expect(scene.titles == "abcdefgh" && !scene.context.hasChanges)
    for track in try scene.known("bf") { scene.context.delete(track) }
    tracks.insert(contentsOf: scene.new("xy"), at: 2)
    try scene.becomes("acxydegh")
  }

  @Test(arguments: TestStore.withChild) func bothEndsOfManyToManyFollow(_ store: TestStore) throws {
    let scene = try Scene(store), context = scene.context, genres = scene.album.genres
    let made = "jkl".map { letter in
      let genre = context.insert(Genre.self)
      genre.name = String(letter)
      return genre
    }
    genres.insert(contentsOf: made, atOffsets: [0, 1, 2])
    #expect(made.allSatisfy { Array($0.albums) == [scene.album] })
    try context.save()
    genres.replace(atOffsets: [0, 2], with: [made[2], made[0]])
    genres.remove(atOffsets: [1])
    #expect(genres.map(\.name) == ["l", "j"] && made[1].albums.isEmpty && made[0].albums.count == 1)
    try context.save()
    let last = try scene.place.context()
    #expect(try last.one(Album.self) { $0.name == "A" }?.genres.map(\.name) == ["l", "j"])
    #expect(
      try last.one(Genre.self) { $0.name == "k" }?.albums.isEmpty == true
        && last.one(Genre.self) { $0.name == "j" }?.albums.map(\.name) == ["A"])
  }

  @Test(arguments: TestStore.withChild) func severalObjectsOfASetAreTakenOut(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    let fido = setup.dog("Fido"), ann = setup.person("Ann")
    for name in ["a", "b", "c", "d"] { fido.friends.insert(setup.dog(name, owner: ann)) }
    setup.dog("x")
    try setup.save()
    let context = try place.context()
    func dogs(_ names: String) throws -> [Dog] {
      try names.map { name in try #require(try context.one(Dog.self) { $0.name == String(name) }) }
    }
    func names(_ dogs: some Sequence<Dog>) -> String { dogs.map(\.name).sorted().joined() }
    let same = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      owner = try #require(try context.one(Person.self) { $0.name == "Ann" })
    same.friends.subtract(try dogs("ax"))
    owner.dogs.formIntersection(try dogs("bcx"))
    #expect(names(same.friends) == "bcd" && names(owner.dogs) == "bc")
    #expect(try dogs("a")[0].friendOf.isEmpty && dogs("d")[0].owner == nil && dogs("x")[0].owner == nil)
    try context.save()
    same.friends.formIntersection(try dogs("cdx"))
    owner.dogs.subtract(owner.dogs)
    #expect(names(same.friends) == "cd" && owner.dogs.isEmpty)
    try context.save()
    same.friends.formIntersection(try dogs("cd"))
    same.friends.subtract(try dogs("abx"))
    #expect(!context.hasChanges)
    let last = try place.context()
    #expect(names(try #require(try last.one(Dog.self) { $0.name == "Fido" }).friends) == "cd")
    #expect(
      try last.one(Dog.self) { $0.name == "b" }?.friendOf.isEmpty == true && last.count(for: FetchRequest<Dog> { $0.owner != nil }) == 0)
  }

  @Test(.ownThreads) func positionsThatAreNotThereAreMisuse() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let scene = try Scene(.memory)
        scene.album.tracks.insert(contentsOf: scene.new("x"), at: 6)
      }
    }
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let scene = try Scene(.memory)
        scene.album.tracks.insert(contentsOf: scene.new("xy"), atOffsets: [0, 7])
      }
    }
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let scene = try Scene(.memory)
        scene.album.tracks.replace(atOffsets: [0, 1], with: scene.new("x"))
      }
    }
    await #expect(processExitsWith: .failure) { mustTrap { try Scene(.memory).album.tracks.remove(atOffsets: [5]) } }
  }
}
