import Foundation
import Holdfast
import HoldfastMemoryStore
import Testing

/// The examples of the article *Attributes* behave as it describes.
@Suite struct AttributeTests {
  @Test @MainActor func theTrailsInTheNorthAreFound() throws {
    #expect(try northernTrails() == ["Besseggen double(61.5)"])
  }

  @Test func everyKindOfAttributeIsRead() throws {
    let coordinator = try PersistentStoreCoordinator(
      model: trailModel(), transformers: ["Palette": CodableTransformer<Palette>()], store: .memory())
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [Trail.self])
    let trail = context.insert(Trail.self)
    trail.title = "Besseggen"
    trail.terrain = .heath
    trail.site = URL(string: "https://example.org")
    trail.photo = trail.objectID
    trail.palette = Palette(colours: ["grey"])
    trail.walkedToday = true
    try context.save()
    #expect(trail.terrain == .heath && trail.palette?.colours == ["grey"] && trail.site?.host() == "example.org")
    #expect(trail.photo == trail.objectID && !trail.objectID.isTemporaryID && trail.start == nil && trail.walkedToday && trail.toll == nil)
  }

  @Test func theAccessorsInCommentsWork() throws {
    let context = try SmallAtlas.context(), spot = context.insert(SmallAtlas.Spot.self)
    #expect(spot.mood == .wild && spot.score == 0 && SmallAtlas.tags().names == ["Tags"])
    spot.colour = SmallAtlas.Colour(red: 1, green: 2, blue: 3)
    spot.home = SmallAtlas.Place(city: "Oslo", latitude: 59.9, longitude: 10.75)
    spot.score = 4
    try context.save()
    #expect(spot.colour?.green == 2 && spot.home?.city == "Oslo" && spot.score == 4)
    #expect(try context.fetch(SmallAtlas.Spot.self) { $0.home.latitude > 59 } == [spot])
  }
}
